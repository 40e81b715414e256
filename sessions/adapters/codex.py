"""OpenAI's codex, one shot. The prompt goes through stdin: it may be longer than an argument, and `ps` shows arguments.

Its workspace-write sandbox ends at the worktree, so it cannot commit to the repository: the Runtime commits.
Source: `codex exec --help`, developers.openai.com/codex/noninteractive.
"""

from coordinate_agents.sessions.adapters.base import Adapter

ADAPTER = Adapter(
    name="codex",
    command="codex",
    subcommand=("exec", "--skip-git-repo-check"),
    permissions={
        "deny": ("--sandbox", "read-only"),
        "edits": ("--sandbox", "workspace-write"),
        "allow": ("--sandbox", "danger-full-access"),
    },
    args=("-",),
    delivery="stdin",
    commit="runtime",
)
