"""graph-deliver: one local branch with what is integrated, and the commands that would publish it. Pushes nothing."""

import errno
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from coordinate_agents.graph.acts.deliver import deliver
from coordinate_agents.graph.delivering import MAX_COMMITS, body, delivery, title_of
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.graph.operations.asking import by_driver_or_alone, with_lease
from coordinate_agents.graph.operations.loading import load_snapshot, pick_graph
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.worktrees.values import value_class

# Looking at git and moving one ref.
_DELIVER_WAIT_S: Final = 30.0
_FOLDER: Final = "deliveries"
_NO_REMOTE: Final = "REMOTE"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


@value_class
class Request:
    graph: str | None = None
    branch: str = ""
    squash: bool = False


def execute(runtime: Runtime, request: Request) -> Result:
    """The same once more changes nothing, not even the record.

    Raises: TASK_STATE_CONFLICT, WORKTREE_CONFLICT, INVALID_USAGE; nothing was changed then.
    """
    row = pick_graph(runtime.store, request.graph)
    asked = {"branch": request.branch, "squash": request.squash}
    _, snapshot = load_snapshot(runtime.store, row.id)
    told: Mapping[str, Any] | None = _as_before(runtime, snapshot, request)
    text = _text(runtime, snapshot)
    path = _write(runtime.state_dir / _FOLDER, f"{row.id}-{delivery(snapshot).commit[:12]}.md", text)
    if told is None:
        told = by_driver_or_alone(
            runtime,
            row.id,
            "deliver",
            asked,
            deliver,
            verb="graph-deliver",
            wait_s=_DELIVER_WAIT_S,
            begin=with_lease,
        )
    publish = _publish(runtime, snapshot, request.branch, path)
    return Result({"graph": row.id, "delivered": dict(told), "bodyFile": str(path), "publish": publish})


def _as_before(runtime: Runtime, snapshot: Snapshot, request: Request) -> dict[str, Any] | None:
    """What is said when the branch still holds exactly what was delivered to it; None otherwise."""
    found = delivery(snapshot)
    for each in snapshot.summary.deliveries:
        is_same = (each.branch, each.source, each.is_squashed) == (request.branch, found.commit, request.squash)
        if is_same and runtime.worktrees.tip_of_branch(each.branch) == each.commit:
            return {
                "branch": each.branch,
                "commit": each.commit,
                "source": each.source,
                "previous": each.commit,
                "isSquashed": each.is_squashed,
                "recorded": False,
            }
    return None


def _text(runtime: Runtime, snapshot: Snapshot) -> str:
    found = delivery(snapshot)
    return body(snapshot, found, runtime.worktrees.subjects(found.base, found.commit, limit=MAX_COMMITS + 1))


def _write(folder: Path, name: str, text: str) -> Path:
    """Whole or not at all, readable by its owner alone. Raises: GraphError; nothing was delivered then."""
    path = folder / name
    draft = folder / f"{name}.new"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        draft.replace(path)
    except OSError as error:
        raise GraphError(
            "DISK_FULL" if error.errno in _FULL else "REPOSITORY_UNSUPPORTED",
            f"The text for the pull request could not be written to {path}: {error.strerror}.",
            kept="every branch as it is; nothing was delivered",
            stage="deliver",
        ) from error
    return path


def _publish(runtime: Runtime, snapshot: Snapshot, branch: str, body_file: Path) -> Sequence[str]:
    """Commands to paste: the push, then one for each forge's program."""
    remotes = runtime.worktrees.remotes()
    remote = "origin" if "origin" in remotes else next(iter(remotes), _NO_REMOTE)
    name, title, file = shlex.quote(branch), shlex.quote(title_of(snapshot)), shlex.quote(str(body_file))
    onto = _target(snapshot, remotes)
    base, target = (f" --base {onto}", f" --target-branch {onto}") if onto else ("", "")
    return [
        f"git push --set-upstream {shlex.quote(remote)} {name}",
        f"gh pr create{base} --head {name} --title {title} --body-file {file}",
        f'glab mr create{target} --source-branch {name} --title {title} --description "$(cat {file})"',
    ]


def _target(snapshot: Snapshot, remotes: Sequence[str]) -> str:
    """The branch that the base was named by, as a forge calls it; empty when it was none."""
    name = snapshot.summary.base_branch
    for prefix in ("refs/heads/", *(f"refs/remotes/{remote}/" for remote in remotes)):
        if name.startswith(prefix):
            return shlex.quote(name.removeprefix(prefix))
    return ""
