package guard

// rule says that a file is acted upon by a tool of the host.
type rule struct {
	// name is a pattern for the end of a path: "NAME" or "DIR/NAME", where NAME
	// is one of path.Match, or "DIR/**" and "DIR/DIR/**" for everything below.
	name     string
	severity Severity
	tool     string // what acts on it
	does     string // and how
	live     bool   // while the person works elsewhere: on opening, on a prompt, on a timer
	top      bool   // only at the top of a repository or of the workspace
	kind     Kind   // Tool where it is not given
}

func (r *rule) why() string { return r.tool + " " + r.does }

// rules is every file that is acted upon. The first that matches counts.
//
// Left out on purpose: what only names a version (.nvmrc, .python-version),
// what only sets how text is laid out or listed (.editorconfig, .mailmap,
// .gitignore, .git-blame-ignore-revs), and what the project is made of
// (Makefile, package.json, build.rs, conftest.py, shell.nix): that runs when
// the person builds, tests or runs the project, which is their own step, to be
// taken after reading what the agent wrote.
var rules = []rule{
	// Editors run these on opening the directory, or read from them what to run.
	{name: ".vscode/tasks.json", severity: Danger, tool: "VS Code", does: "runs its tasks when the folder is opened", live: true},
	{name: ".vscode/settings.json", severity: Danger, tool: "VS Code", does: "takes from it which programs to run", live: true},
	{name: ".vscode/mcp.json", severity: Danger, tool: "VS Code", does: "starts the servers it names", live: true},
	{name: ".vscode/**", severity: Warning, tool: "VS Code", does: "reads what to start and to install from it", live: true},
	{name: "*.code-workspace", severity: Danger, tool: "VS Code", does: "takes tasks and settings from it", live: true},
	{name: ".devcontainer/**", severity: Warning, tool: "VS Code and other editors", does: "run its initializeCommand on the host", live: true},
	{name: ".devcontainer.json", severity: Warning, tool: "VS Code and other editors", does: "run its initializeCommand on the host", live: true},
	{name: ".idea/**", severity: Danger, tool: "JetBrains editors", does: "run the start-up tasks, watchers and interpreters it names", live: true},
	{name: ".fleet/**", severity: Warning, tool: "JetBrains Fleet", does: "runs what it names", live: true},
	{name: ".zed/**", severity: Danger, tool: "Zed", does: "runs the language servers and tasks it names", live: true},
	{name: ".helix/**", severity: Warning, tool: "Helix", does: "runs the language servers it names when started here", live: true},
	{name: ".vim/**", severity: Warning, tool: "Vim plug-ins", does: "load it when a file here is opened"},
	{name: ".vimrc", severity: Warning, tool: "Vim", does: "runs it when started here with 'exrc'"},
	{name: ".exrc", severity: Warning, tool: "Vim", does: "runs it when started here with 'exrc'"},
	{name: ".nvimrc", severity: Warning, tool: "Neovim", does: "runs it when started here with 'exrc'"},
	{name: ".nvim.lua", severity: Warning, tool: "Neovim", does: "runs it when started here with 'exrc'"},
	{name: ".lazy.lua", severity: Warning, tool: "Neovim's lazy.nvim", does: "loads the plug-ins it names when started here"},
	{name: ".lvimrc", severity: Warning, tool: "Vim's localvimrc", does: "runs it when a file here is opened"},
	{name: ".dir-locals.el", severity: Warning, tool: "Emacs", does: "takes settings from it when a file here is opened"},
	{name: ".dir-locals-2.el", severity: Warning, tool: "Emacs", does: "takes settings from it when a file here is opened"},
	{name: ".ycm_extra_conf.py", severity: Warning, tool: "Vim's YouCompleteMe", does: "runs it when a file here is opened, once it was allowed"},
	// What editors lint with, as soon as a file is opened.
	{name: ".pylintrc", severity: Warning, tool: "pylint and editors", does: "run its init-hook", live: true},
	{name: "pylintrc", severity: Warning, tool: "pylint and editors", does: "run its init-hook", live: true},
	{name: ".flake8", severity: Warning, tool: "flake8 and editors", does: "load the plug-ins it names", live: true},
	{name: "mypy.ini", severity: Warning, tool: "mypy and editors", does: "load the plug-ins it names", live: true},
	{name: ".mypy.ini", severity: Warning, tool: "mypy and editors", does: "load the plug-ins it names", live: true},
	{name: ".rubocop.yml", severity: Warning, tool: "RuboCop and editors", does: "load the files it requires", live: true},
	{name: ".solargraph.yml", severity: Warning, tool: "Solargraph and editors", does: "load the plug-ins it names", live: true},
	{name: ".eslintrc.*js", severity: Note, tool: "ESLint and editors", does: "run it", live: true},
	{name: "eslint.config.*", severity: Note, tool: "ESLint and editors", does: "run it", live: true},
	{name: ".prettierrc.*js", severity: Note, tool: "Prettier and editors", does: "run it", live: true},
	{name: "*.sublime-project", severity: Warning, tool: "Sublime Text", does: "takes build commands from it"},
	{name: ".gdbinit", severity: Warning, tool: "gdb", does: "runs it when started here"},
	{name: ".lldbinit", severity: Warning, tool: "lldb", does: "runs it when started here"},
	{name: ".Rprofile", severity: Warning, tool: "R", does: "runs it when started here"},
	{name: ".irbrc", severity: Warning, tool: "irb", does: "runs it when started here"},
	{name: ".pryrc", severity: Warning, tool: "pry", does: "runs it when started here"},
	{name: ".pdbrc", severity: Warning, tool: "Python's pdb", does: "runs it when started here"},
	{name: ".ghci", severity: Warning, tool: "ghci", does: "runs it when started here"},
	{name: ".ocamlinit", severity: Warning, tool: "ocaml", does: "runs it when started here"},
	{name: ".iex.exs", severity: Warning, tool: "iex", does: "runs it when started here"},
	{name: ".octaverc", severity: Warning, tool: "Octave", does: "runs it when started here"},

	// Coding agents on the host are programs, too.
	{name: ".claude/settings.json", severity: Danger, tool: "Claude Code", does: "runs its hooks when it starts here", live: true},
	{name: ".claude/settings.local.json", severity: Danger, tool: "Claude Code", does: "runs its hooks when it starts here", live: true},
	{name: ".claude/**", severity: Warning, tool: "Claude Code", does: "obeys and runs what it holds when it starts here"},
	{name: ".mcp.json", severity: Danger, tool: "Claude Code and other agents", does: "start the servers it names", live: true},
	{name: ".cursor/mcp.json", severity: Danger, tool: "Cursor", does: "starts the servers it names", live: true},
	{name: ".cursor/**", severity: Warning, tool: "Cursor", does: "obeys and runs what it holds"},
	{name: ".gemini/**", severity: Warning, tool: "Gemini CLI", does: "starts the servers it names"},
	{name: ".codex/**", severity: Warning, tool: "Codex", does: "starts the servers it names"},
	{name: ".opencode/**", severity: Warning, tool: "OpenCode", does: "loads the plug-ins it holds"},
	{name: "opencode.json", severity: Warning, tool: "OpenCode", does: "starts the servers it names"},
	{name: "opencode.jsonc", severity: Warning, tool: "OpenCode", does: "starts the servers it names"},
	{name: ".windsurf/**", severity: Warning, tool: "Windsurf", does: "obeys and runs what it holds"},
	{name: ".kiro/**", severity: Warning, tool: "Kiro", does: "runs the hooks and starts the servers it names"},
	{name: ".amazonq/**", severity: Warning, tool: "Amazon Q", does: "starts the servers it names"},
	{name: ".roo/**", severity: Warning, tool: "Roo Code", does: "starts the servers it names"},
	{name: ".qwen/**", severity: Warning, tool: "Qwen Code", does: "starts the servers it names"},
	{name: "crush.json", severity: Warning, tool: "Crush", does: "starts the servers it names"},
	{name: ".crush.json", severity: Warning, tool: "Crush", does: "starts the servers it names"},
	{name: ".aider.conf.yml", severity: Warning, tool: "aider", does: "runs the lint and test commands it names"},
	{name: ".continue/**", severity: Warning, tool: "Continue", does: "starts the servers it names"},

	// Shells.
	{name: ".envrc*", severity: Danger, tool: "direnv", does: "runs it at the prompt, once it was allowed or from one that was", live: true},
	{name: ".autoenv.zsh", severity: Warning, tool: "zsh-autoenv", does: "runs it at the prompt", live: true},
	{name: ".env.zsh", severity: Warning, tool: "zsh plug-ins", does: "run it at the prompt", live: true},
	{name: ".env", severity: Note, tool: "direnv, Docker Compose and many libraries", does: "set variables from it"},
	{name: "mise.toml", severity: Danger, tool: "mise", does: "runs its hooks and sets PATH at the prompt, once it was trusted", live: true},
	{name: ".mise.toml", severity: Danger, tool: "mise", does: "runs its hooks and sets PATH at the prompt, once it was trusted", live: true},
	{name: "mise.*.toml", severity: Danger, tool: "mise", does: "runs its hooks and sets PATH at the prompt, once it was trusted", live: true},
	{name: ".mise.*.toml", severity: Danger, tool: "mise", does: "runs its hooks and sets PATH at the prompt, once it was trusted", live: true},
	{name: ".mise/**", severity: Danger, tool: "mise", does: "runs its hooks and tasks, once it was trusted", live: true},
	{name: ".config/mise/**", severity: Danger, tool: "mise", does: "runs its hooks and tasks, once it was trusted", live: true},
	{name: ".config/mise.toml", severity: Danger, tool: "mise", does: "runs its hooks and sets PATH at the prompt, once it was trusted", live: true},
	{name: ".tool-versions", severity: Warning, tool: "asdf and mise", does: "choose by it which programs run here", live: true},
	{name: ".prototools", severity: Warning, tool: "proto", does: "chooses by it which programs run here, and loads the plug-ins it names", live: true},

	// Package managers and build tools that run what it names for any command.
	{name: ".npmrc", severity: Warning, tool: "npm", does: "takes from it which programs and registries it uses"},
	{name: ".yarnrc.yml", severity: Danger, tool: "yarn", does: "runs the program it names as yarn itself"},
	{name: ".yarnrc", severity: Danger, tool: "yarn", does: "runs the program it names as yarn itself"},
	{name: ".yarn/**", severity: Warning, tool: "yarn", does: "runs what lies there as yarn itself"},
	{name: ".pnpmfile.cjs", severity: Warning, tool: "pnpm", does: "runs it for pnpm install"},
	{name: ".pnpmfile.mjs", severity: Warning, tool: "pnpm", does: "runs it for pnpm install"},
	{name: "bunfig.toml", severity: Warning, tool: "bun", does: "loads the programs it names before any other"},
	{name: ".cargo/config.toml", severity: Danger, tool: "cargo", does: "runs the wrappers, linkers and aliases it names; rust-analyzer calls cargo on opening", live: true},
	{name: ".cargo/config", severity: Danger, tool: "cargo", does: "runs the wrappers, linkers and aliases it names; rust-analyzer calls cargo on opening", live: true},
	{name: "rust-toolchain.toml", severity: Danger, tool: "rustup", does: "runs the toolchain it names for cargo and rustc", live: true},
	{name: "rust-toolchain", severity: Danger, tool: "rustup", does: "runs the toolchain it names for cargo and rustc", live: true},
	{name: "gradle-wrapper.properties", severity: Warning, tool: "Gradle and editors", does: "fetch and run what it names on opening", live: true},
	{name: "gradle-wrapper.jar", severity: Warning, tool: "Gradle and editors", does: "run it on opening", live: true},
	{name: ".mvn/**", severity: Warning, tool: "Maven and editors", does: "load the extensions and options it names on opening", live: true},
	{name: ".sbtopts", severity: Warning, tool: "sbt and editors", does: "take options for Java from it", live: true},
	{name: ".jvmopts", severity: Warning, tool: "sbt and editors", does: "take options for Java from it", live: true},
	{name: ".terraform/**", severity: Warning, tool: "Terraform", does: "runs the providers that lie there"},
	{name: ".bazelrc", severity: Warning, tool: "Bazel", does: "takes options for every command from it"},
	{name: "tools/bazel", severity: Warning, tool: "Bazel", does: "runs it in its own place"},
	{name: "ansible.cfg", severity: Warning, tool: "Ansible", does: "loads the plug-ins it names when started here"},
	{name: "docker-compose.override.y*ml", severity: Note, tool: "Docker Compose", does: "adds it to docker-compose.yml unasked"},
	{name: "compose.override.y*ml", severity: Note, tool: "Docker Compose", does: "adds it to compose.yml unasked"},

	// Version control. Git's own is looked at by what it says.
	{name: ".lfsconfig", severity: Warning, tool: "git lfs", does: "sends files and credentials to the server it names"},
	{name: ".hg/**", severity: Danger, tool: "Mercurial and prompts that show its state", does: "run the hooks and extensions that its hgrc names", live: true},
	{name: ".jj/**", severity: Danger, tool: "Jujutsu and prompts that show its state", does: "run the programs that its config names", live: true},
	{name: ".sl/**", severity: Danger, tool: "Sapling", does: "runs the hooks and extensions that its config names", live: true},
	{name: ".pijul/**", severity: Warning, tool: "Pijul", does: "runs the hooks that its config names"},
	{name: ".bzr/**", severity: Warning, tool: "Breezy", does: "takes settings from it"},
	{name: ".svn/**", severity: Note, tool: "Subversion", does: "takes from it where to send and fetch"},
	{name: ".husky/**", severity: Danger, tool: "git", does: "runs what lies there as hooks where husky is used"},
	{name: ".githooks/**", severity: Warning, tool: "git", does: "runs what lies there as hooks where it is told to"},
	{name: ".pre-commit-config.yaml", severity: Warning, tool: "pre-commit", does: "runs the hooks it names for git commit, where it is installed"},
	{name: "lefthook.y*ml", severity: Warning, tool: "lefthook", does: "runs the commands it names for git commit, where it is installed"},
	{name: ".lefthook.y*ml", severity: Warning, tool: "lefthook", does: "runs the commands it names for git commit, where it is installed"},
	{name: "lefthook-local.y*ml", severity: Warning, tool: "lefthook", does: "runs the commands it names for git commit, where it is installed"},
	{name: ".overcommit.yml", severity: Warning, tool: "overcommit", does: "runs the commands it names for git commit, where it is installed"},
	{name: ".lintstagedrc*", severity: Note, tool: "lint-staged", does: "runs the commands it names for git commit, where it is installed"},

	// What runs elsewhere, with secrets, once it is pushed.
	{name: ".github/workflows/**", severity: Warning, tool: "GitHub", does: "runs it with the repository's secrets once it is pushed", top: true},
	{name: ".github/actions/**", severity: Warning, tool: "GitHub", does: "runs it with the repository's secrets once it is pushed", top: true},
	{name: ".gitlab-ci.yml", severity: Warning, tool: "GitLab", does: "runs it with the project's secrets once it is pushed", top: true},
	{name: ".gitlab/**", severity: Note, tool: "GitLab", does: "may include it in its jobs once it is pushed", top: true},
	{name: ".forgejo/**", severity: Warning, tool: "Forgejo", does: "runs workflows with the repository's secrets once it is pushed", top: true},
	{name: ".gitea/**", severity: Warning, tool: "Gitea", does: "runs workflows with the repository's secrets once it is pushed", top: true},
	{name: ".circleci/**", severity: Warning, tool: "CircleCI", does: "runs it with the project's secrets once it is pushed", top: true},
	{name: ".buildkite/**", severity: Warning, tool: "Buildkite", does: "runs it with the project's secrets once it is pushed", top: true},
	{name: ".woodpecker/**", severity: Warning, tool: "Woodpecker", does: "runs it with the project's secrets once it is pushed", top: true},
	{name: ".woodpecker.y*ml", severity: Warning, tool: "Woodpecker", does: "runs it with the project's secrets once it is pushed", top: true},
	{name: ".drone.yml", severity: Warning, tool: "Drone", does: "runs it with the project's secrets once it is pushed", top: true},
	{name: ".travis.yml", severity: Warning, tool: "Travis", does: "runs it with the project's secrets once it is pushed", top: true},
	{name: ".appveyor.yml", severity: Warning, tool: "AppVeyor", does: "runs it with the project's secrets once it is pushed", top: true},
	{name: "azure-pipelines.yml", severity: Warning, tool: "Azure Pipelines", does: "runs it with the project's secrets once it is pushed", top: true},
	{name: "bitbucket-pipelines.yml", severity: Warning, tool: "Bitbucket", does: "runs it with the project's secrets once it is pushed", top: true},
	{name: "Jenkinsfile", severity: Warning, tool: "Jenkins", does: "runs it with the project's secrets once it is pushed", top: true},

	// Lazaret itself. At the top of the workspace trust is asked for; below,
	// the agent may have written what a later launch there would be asked about.
	{name: "lazaret.toml", severity: Warning, tool: "lazaret", does: "locks and launches by it in that directory, after asking", kind: Lazaret},
	{name: "lazaret.lock", severity: Warning, tool: "lazaret", does: "launches by it in that directory, after asking", kind: Lazaret},
}
