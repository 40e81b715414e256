"""doctor: is everything here that a run needs, and what did earlier runs leave? Looks only, except with `live`."""

import shlex
from collections import Counter
from collections.abc import Generator, Iterator, Set
from dataclasses import asdict
from pathlib import Path

from coordinate_agents.cli import config
from coordinate_agents.cli.setup.agents import look_at_agents, with_found
from coordinate_agents.cli.setup.findings import Finding
from coordinate_agents.cli.setup.live import try_agent
from coordinate_agents.cli.setup.machine import look_at_folder, look_at_machine
from coordinate_agents.graph.config import Config
from coordinate_agents.graph.errors import EXIT_DONE, EXIT_REFUSED, GraphError
from coordinate_agents.graph.operations.recorded import worktree_root
from coordinate_agents.graph.operations.table import Result
from coordinate_agents.graph.runtime import Runtime
from coordinate_agents.graph.snapshot import run_from_row
from coordinate_agents.graph.text import counted, listed
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.leftovers import leftovers
from coordinate_agents.worktrees.outline import outline
from coordinate_agents.worktrees.repository import open_repository
from coordinate_agents.worktrees.values import value_class

_MAX_NAMED = 10


@value_class
class Request:
    live: str | None = None


def execute(runtime: Runtime | None, request: Request) -> Result:
    """`findings` in the order looked at; exit code 1 when one is an error."""
    findings = list(_look(runtime, request.live))
    counts = Counter(each.level for each in findings)
    return Result(
        {
            "findings": [asdict(each) for each in findings],
            "counts": {level: counts[level] for level in ("ok", "warn", "error")},
        },
        EXIT_REFUSED if counts["error"] else EXIT_DONE,
    )


def _look(runtime: Runtime | None, live: str | None) -> Iterator[Finding]:
    yield from look_at_machine()
    root = runtime.root if runtime is not None else Path.cwd()
    if runtime is None:
        yield Finding("warn", "repository", f"{root} is not inside one", "change into it, or name it with --root DIR")
    else:
        yield from _repository(root)
        yield from _state(runtime)
    loaded = yield from _configuration(root)
    if runtime is not None:
        yield from look_at_folder("worktree root", worktree_root(loaded, None))
    yield from _agents(loaded, root)
    if live is not None:
        yield from try_agent(loaded, live)


def _repository(root: Path) -> Iterator[Finding]:
    try:
        facts = open_repository(str(root))
        seen = outline(facts)
    except WorktreeError as error:
        yield Finding("error", "repository", str(error), error.next)
        return
    kinds = [
        facts.object_format,
        *(["bare"] if facts.is_bare else []),
        *(["shallow"] if facts.is_shallow else []),
        *(["partial"] if facts.is_partial else []),
    ]
    yield Finding("ok", "repository", f"{facts.root} ({', '.join(kinds)})")
    place = "HEAD is detached" if seen.branch is None else f"on branch {seen.branch}"
    remotes = f"remotes {', '.join(seen.remotes)}" if seen.remotes else "no remote"
    yield Finding("ok", "branches", f"{place}; {seen.branches} branches, {seen.tags} tags, {remotes}")
    for name in seen.missing_filters:
        what = f"the program of filter {name} is not found: worktrees that need it cannot be made"
        yield Finding("warn", "filters", what, "install it, or remove the filter from your git configuration")


def _state(runtime: Runtime) -> Iterator[Finding]:
    yield from look_at_folder("state folder", runtime.state_dir)
    try:
        store = runtime.store
        store.verify_chain(full=True)
        graphs = store.graphs()
        rows = [(graph.id, run_from_row(run.row)) for graph in graphs for run in store.runs(graph.id)]
    except GraphError as error:
        yield Finding("error", "state database", str(error), error.next)
        return
    yield Finding("ok", "state database", f"{counted(len(graphs), 'graph')}, every event as it was written")
    made = [(graph, run) for graph, run in rows if run.worktree is not None]
    gone = [f"{graph}/{run.id}" for graph, run in made if run.worktree and not Path(run.worktree.path).exists()]
    if gone:
        shown = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
        yield Finding(
            "warn", "worktrees", f"{len(gone)} recorded ones are gone ({shown})", "graph-run makes them again"
        )
    yield Finding("ok", "worktrees", f"{len(made) - len(gone)} that the Runtime made are in their place")
    yield from _leftovers(runtime, {graph.id for graph in graphs})


def _leftovers(runtime: Runtime, known: Set[str]) -> Iterator[Finding]:
    """Of graphs without a record. What is advised refuses where a worktree holds something that is in no commit."""
    try:
        found = leftovers(open_repository(str(runtime.root)), known)
    except WorktreeError:
        return  # said before
    if found.branches:
        said = f"branches of graphs in no record: {listed(found.branches, first=5)}"
        yield Finding("warn", "leftovers", said, "git branch --list -v 'coordinate-agents/*'")
    for place in found.worktrees[:_MAX_NAMED]:
        word = shlex.quote(place)
        said = f"worktree {place} is of a graph in no record"
        yield Finding("warn", "leftovers", said, f"git worktree unlock {word}; git worktree remove {word}")
    if len(found.worktrees) > _MAX_NAMED:
        said = f"{len(found.worktrees) - _MAX_NAMED} more worktrees of graphs in no record"
        yield Finding("warn", "leftovers", said, "git worktree list")


def _configuration(root: Path) -> Generator[Finding, None, Config]:
    """Findings about the two files; returns the configuration in force (empty when it cannot be read)."""
    try:
        loaded = config.load(root)
    except GraphError as error:
        first = f" ({error.problems[0].message})" if error.problems else ""
        yield Finding("error", "configuration", f"{error}{first}", error.next)
        return Config()
    files = [str(path) for path in (loaded.project_path, loaded.user_path) if path.exists()]
    yield Finding("ok", "configuration", ", ".join(files) or "no file; the defaults are in force")
    if not loaded.is_trusted:
        keys = ", ".join(loaded.inert[:5])
        yield Finding(
            "warn", "trust", f"{config.PROJECT_FILE} sets {keys} and is not trusted", "coordinate-agents setup-trust"
        )
    return loaded.config


def _agents(loaded: Config, root: Path) -> Iterator[Finding]:
    usable = []
    for each in look_at_agents(loaded, root):
        if each.command is not None:
            usable.append(each.agent)
            yield Finding("ok", f"agent {each.agent}", f"{each.command} (named by {each.source})")
        elif each.configured:
            yield Finding("error", f"agent {each.agent}", each.error or "cannot be started", each.next)
    if not usable:
        following = "coordinate-agents setup-configure --agent NAME --command PROGRAM"
        yield Finding("warn", "agents", "none is configured or found", following)
    elif len(usable) > 1 and with_found(loaded, root).only_agent() is None:
        said = f"a subtask that names none cannot start: {listed(usable)} are there, and none is the default"
        yield Finding("warn", "agents", said, f"coordinate-agents setup-configure --default-agent {usable[0]}")
