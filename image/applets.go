package image

// Applets are the names under which builtin:shell has its one binary in /bin.
// The guest has a test that it knows them all.
const Applets = `
[ base64 basename cat chmod chown cp cut date dd dirname dmesg echo env false
find grep gunzip gzip head hostname id kill ln ls mkdir mkfifo mktemp mount mv
nproc printf ps pwd readlink realpath rm rmdir seq sh sha256sum sleep sort stat
stty sync tail tar tee test timeout touch tr true tty umount uname uniq wc
which whoami xargs yes
`
