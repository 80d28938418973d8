package podman

import (
	"encoding/json"
	"strings"
)

// routerCalls are the system calls that a router makes: those of a Go program that
// talks to sockets and to the kernel's network, and what a runtime needs to
// start it. Podman's own profile lets a container make nearly four hundred, and takes
// longer to be put into the kernel's form, for three architectures, than the
// router takes for all of its work. What another kernel or another Go would like
// better is answered with "there is no such call", upon which both do without.
const routerCalls = `
read write readv writev pread64 pwrite64 close close_range lseek dup dup2 dup3 fcntl ioctl pipe pipe2 splice sendfile
open openat stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat getdents64 getcwd chdir statfs fstatfs
mmap munmap mprotect mremap madvise mincore brk membarrier
clone exit exit_group execve futex set_robust_list set_tid_address rseq arch_prctl prctl restart_syscall wait4 waitid
rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack kill tgkill tkill
getpid getppid gettid getuid geteuid getgid getegid getgroups getrlimit setrlimit prlimit64 uname sysinfo getrandom
capget capset setuid setgid setgroups setresuid setresgid umask
sched_yield sched_getaffinity nanosleep clock_gettime clock_getres clock_nanosleep gettimeofday
timer_create timer_settime timer_delete setitimer
epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 poll ppoll select pselect6
socket socketpair bind connect listen accept accept4 shutdown getsockname getpeername getsockopt setsockopt
sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg
`

// RouterCalls is the seccomp profile of a router: the machine's own architecture
// only, without which a profile of podman's holds for its elder siblings too.
func RouterCalls() string {
	type arch struct {
		Architecture string `json:"architecture"`
	}
	type rule struct {
		Names  []string `json:"names"`
		Action string   `json:"action"`
	}
	const noSuchCall = 38 // ENOSYS
	b, err := json.Marshal(struct {
		Default string `json:"defaultAction"`
		Errno   uint   `json:"defaultErrnoRet"`
		Arch    []arch `json:"archMap"`
		Calls   []rule `json:"syscalls"`
	}{"SCMP_ACT_ERRNO", noSuchCall, []arch{{"SCMP_ARCH_X86_64"}, {"SCMP_ARCH_AARCH64"}}, []rule{{strings.Fields(routerCalls), "SCMP_ACT_ALLOW"}}})
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return string(b) + "\n"
}
