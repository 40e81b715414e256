"""The judge's fixed configuration and environment (contract section 4). Values only."""

import os
from typing import Final

# Who writes reflog entries of Runtime refs; commits name their author themselves.
RUNTIME_NAME: Final = "coordinate-agents"
RUNTIME_EMAIL: Final = "coordinate-agents@localhost"

CONFIG: Final = """\
[core]
	repositoryformatversion = {version}
	bare = true
	logAllRefUpdates = false
	hooksPath = /dev/null
	fsmonitor = false
	commitGraph = false
	multiPackIndex = false
	untrackedCache = false
	splitIndex = false
	attributesFile = /dev/null
	excludesFile = /dev/null
	quotePath = false
	pager = cat
	editor = false
[extensions]
	objectFormat = {object_format}
[gc]
	auto = 0
[maintenance]
	auto = false
[commit]
	gpgSign = false
[tag]
	gpgSign = false
[credential]
	helper =
[protocol]
	allow = never
[merge]
	directoryRenames = false
	renames = true
	renormalize = false
	renameLimit = 7000
	conflictStyle = merge
[diff]
	renames = true
	renameLimit = 7000
	algorithm = myers
	ignoreSubmodules = none
	noprefix = false
	mnemonicPrefix = false
[index]
	version = 2
	sparse = false
	threads = 1
[submodule]
	recurse = false
[feature]
	manyFiles = false
[advice]
	detachedHead = false
"""

ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ADVICE": "0",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_AUTHOR_NAME": RUNTIME_NAME,
    "GIT_AUTHOR_EMAIL": RUNTIME_EMAIL,
    "GIT_COMMITTER_NAME": RUNTIME_NAME,
    "GIT_COMMITTER_EMAIL": RUNTIME_EMAIL,
    "LC_ALL": "C",
}

# What overrides the user's shared configuration where the user's git dir must be touched.
USER_OVERRIDES: Final = (
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.commitGraph", "false"),
    ("core.multiPackIndex", "false"),
    ("core.attributesFile", os.devnull),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("worktree.guessRemote", "false"),
    # With relative paths git writes an extension into the user's configuration.
    ("worktree.useRelativePaths", "false"),
    ("protocol.allow", "never"),
)
