"""Deaths at named points: what is run, where it dies, and what two ways to one end must have in common.

A Story is a graph, its agents and the verb that is run. `told` is everything that must be the same whether or not
something died on the way: refs, certificates, records, and what is on the disk. Commits stand as their trees, and
certificates without durations and hashes, since these depend on the time.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from world import Done, World, git

from coordinate_agents.graph import crashpoints as graph_points
from coordinate_agents.sessions import crashpoints as session_points
from coordinate_agents.worktrees import crashpoints as worktree_points

POINTS: Final = (*graph_points.POINTS, *worktree_points.POINTS, *session_points.POINTS)
# Points that only a conflict passes, by their beginnings: tests/stories/test_conflict_crashes.py tells of them.
OF_CONFLICTS: Final = ("conflict.", "resolution.", "integration.conflicted", "integration.kept", "scene.", "giving.")
# What a process that was killed may leave: a few bytes that a later start removes after a day, and that nobody reads.
DRAFTS: Final = re.compile(
    r"sessions/[^/]+/\.[^/]+|blobs/../\.[^/]+|judge/tmp/.*|judge\.[0-9a-f]+(/.*)?|worktrees/.*/[^/]+\.json\.[0-9a-f]+"
)

# a leaves its work uncommitted, b is checked in a fresh checkout too, c starts from a merge of both.
_PLAN: Final = """
id: plan
checks: [{name: own-file, run: [sh, -c, 'test -f "f-$COORDINATE_AGENTS_SUBTASK" || test -f f-c']}]
subtasks:
  - {id: a, spec: x, agent: leaves, commit: runtime}
  - {id: b, spec: x, checks: [{name: fresh, run: [test, -f, README.md], checkIn: pristine}]}
  - {id: c, dependsOn: [a, b], spec: x}
"""
_SETUP: Final = "setup: [{run: [sh, -c, 'test -f README.md']}]\n"
_PLAIN: Final = "id: plan\nsubtasks: [{id: a, spec: x}, {id: b, spec: x, dependsOn: a}]\n"
_MERGED: Final = """
id: plan
subtasks:
  - {id: a, spec: x, agent: leaves, commit: runtime}
  - {id: b, spec: x}
"""
_LOST: Final = "id: plan\nsubtasks: [{id: a, agent: lost, spec: x}]\n"

# An agent that finds an earlier one of its subtask alive says "overlap".
_START: Final = """
for pid in $(grep "^start $S " "$FAKE_LOG" | cut -d ' ' -f 4); do
    # A killed agent stays as a zombie until init takes note of it; it does nothing any more.
    case $(ps -o stat= -p "$pid") in '' | Z*) ;; *) echo "overlap $S 0 $pid x" >>"$FAKE_LOG" ;; esac
done
echo "start $S $COORDINATE_AGENTS_ATTEMPT $$ $PWD" >>"$FAKE_LOG"
"""
_END: Final = 'echo "end $S $COORDINATE_AGENTS_ATTEMPT $$ $PWD" >>"$FAKE_LOG"\n'
_WRITES: Final = 'echo "$S" >"f-$S"\n'
_COMMITS: Final = 'git add .; git diff --cached --quiet || git commit -qm "work of $S"\n'
# Its host is gone the first time, and the agent with it: not before the driver noted that it started.
_LOSES: Final = """
if [ "$COORDINATE_AGENTS_ATTEMPT" = 1 ]; then
    until coordinate-agents graph-events plan --json | grep -q SessionStarted; do :; done
    kill -9 $PPID
    sleep 60
fi
"""


@dataclass(frozen=True, slots=True)
class Story:
    """`prepare` brings a fresh world to where `graph-run PLAN --integrate` is told; `runs` of them make it whole."""

    name: str
    plan: str
    prepare: Callable[[World], None]
    runs: int = 1

    def run(self, world: World) -> Done:
        return world.run("graph-run", world.graph(self.plan), "--integrate")

    def run_dying(self, world: World, point: str) -> Done:
        """The same with a death at the point; hosts that are started then die at theirs, too."""
        with world.dying_at(point):
            return self.run(world)

    def finish(self, world: World) -> Done:
        """Run it until it is whole: as often as the undisturbed story needs."""
        for _ in range(self.runs - 1):
            self.run(world)
        return self.run(world)


def _agents(world: World) -> None:
    world.configure(
        {
            "one": (world.agent(_START + _WRITES + _COMMITS + _END, "commits"),),
            "leaves": (world.agent(_START + _WRITES + _END, "leaves"),),
            "lost": (world.agent(_START + _LOSES + _WRITES + _COMMITS + _END, "loses"),),
        }
    )


def _with_setup(world: World) -> None:
    _agents(world)
    config = world.home / ".config" / "coordinate-agents" / "config.yaml"
    config.write_text(config.read_text() + _SETUP)


def _undone(world: World) -> None:
    """A whole run whose integration the user set back in its own worktree: the next run publishes it again."""
    _with_setup(world)
    done = WHOLE.run(world)
    assert done.code == 0, str(done)
    git(Path(world.status("plan")["integration"]["worktree"]), "reset", "-q", "--hard", "main")


WHOLE: Final = Story("whole", _PLAN, _with_setup)
PLAIN: Final = Story("plain", _PLAIN, _agents)
LOST: Final = Story("lost", _LOST, _agents, runs=2)
# Little, with git calls of every kind; not for the points.
MERGED: Final = Story("merged", _MERGED, _agents)
UNDONE: Final = Story("undone", _PLAN, _undone)
STORIES: Final = {story.name: story for story in (WHOLE, PLAIN, LOST, UNDONE)}


# Says the words so that they die at the point, or does not say them at all; whether it did.
Dies = Callable[..., bool]


_told_of: dict[str, dict[str, Any]] = {}


def both_ways(world: World, story: Callable[[World, Dies], None], *, name: str = "") -> None:
    """Play the story without any death in another world, then with all of its deaths: both come to the same end.

    Stories of one `name` differ in their deaths only: one is played without, for all of them.
    """
    undisturbed = _told_of.get(name)
    if undisturbed is None:
        other = World(world.place / "undisturbed", world.home)
        undisturbed = _told_of[name] = _played(other, story, lambda point, *words: False)
        _told_of.pop("", None)

    def dies(point: str, *words: str) -> bool:
        world.run_dying(point, *words)
        assert world.run("graph-status", "plan").code == 0
        return True

    assert_same(_played(world, story, dies), undisturbed)


def _played(world: World, story: Callable[[World, Dies], None], dies: Dies) -> dict[str, Any]:
    before = world.user_state()
    story(world, dies)
    world.assert_nothing_left("plan")
    after = world.user_state()
    # A delivery makes a branch of the user's.
    return {**told(world), "user's": sorted(name for name in {*before, *after} if before.get(name) != after.get(name))}


def assert_same(disturbed: dict[str, Any], undisturbed: dict[str, Any]) -> None:
    found = {name: (disturbed[name], each) for name, each in undisturbed.items() if disturbed[name] != each}
    assert not found, json.dumps(found, indent=1)


def told(world: World) -> dict[str, Any]:
    """What two ways to the same end have in common."""
    trees = _trees(world)
    state = world.root / ".git" / "coordinate-agents"
    return {
        "status": _status(world, trees),
        "verdicts": _verdicts(world, trees),
        "refs": {name: trees[oid] for name, oid in _refs(world) if "/kept-" not in name},
        "certificates": {item["subtask"]: item for item in _certificates(state, trees)},
        "holds": world.run("graph-verify", "plan", "--json").data["holds"],
        "worktrees": {"/".join(path.parts[-2:]): _worktree(path) for path in world.worktrees.glob("*/*/*")},
        "registered": sorted(path.name for path in (world.root / ".git" / "worktrees").glob("*")),
        "recorded": sorted(path.name for path in (state / "worktrees" / "plan").glob("*.json")),
        "agents": sorted({line[1] for line in world.log_lines() if line[0] == "end"}),
        "overlaps": [line for line in world.log_lines() if line[0] == "overlap"],
        "files": world.files("coordinate-agents/plan/integration") if _is_integrated(world) else {},
        "left": sorted(name for name in _hidden(state) if not DRAFTS.fullmatch(name)),
    }


def _is_integrated(world: World) -> bool:
    return git(world.root, "for-each-ref", "refs/heads/coordinate-agents/plan/integration") != ""


def _status(world: World, trees: dict[str, str]) -> Any:
    """All of graph-status but times, counts of tries and drivers, and the names of Sessions."""
    data = world.status("plan")
    for key in ("generation", "driver"):
        del data["graph"][key]
    for item in data["subtasks"]:
        for key in ("attempt", "startedAt", "endedAt", "elapsedS"):
            del item[key]
        item["session"] = item["session"] and item["session"]["state"]
    for item in filter(None, (*data["subtasks"], data["integration"])):
        for check in (item.get("evidence") or item).get("checks", ()):
            del check["durationMs"], check["logPath"]
        if item["failure"]:
            del item["failure"]["logPath"]
    for item in (*data["attention"], *filter(None, [data["review"]]), *data["deliveries"]):
        for key in ("since", "at"):
            item.pop(key, None)
    # The folder of the worktrees is named after the place, too.
    text = re.sub(r"/checkout-[0-9a-f]+/", "/checkout/", json.dumps(data).replace(str(world.place), ""))
    return json.loads(_as_trees(text, trees))


def _verdicts(world: World, trees: dict[str, str]) -> list[tuple[str, str]]:
    """What was accepted, and as which tree: each once, however often somebody died over it."""
    events = world.run("graph-events", "plan", "--json").data["events"]
    judged = [event for event in events if event["type"].endswith("Judged") and event["data"]["accepted"]]
    return sorted((event["subtaskId"] or "integration", trees[event["data"]["commit"]]) for event in judged)


def _worktree(path: Path) -> tuple[str, str, bool]:
    """On which branch, what git says of it, and whether it is locked against the user's prune."""
    folder = Path(git(path, "rev-parse", "--absolute-git-dir"))
    return git(path, "symbolic-ref", "HEAD"), git(path, "status", "--porcelain"), (folder / "locked").exists()


def _as_trees(text: str, trees: dict[str, str]) -> str:
    for commit, tree in trees.items():
        text = text.replace(commit, tree).replace(commit[:12], tree[:12]).replace(commit[:10], tree[:10])
    return text


def attempts(world: World) -> dict[str, int]:
    return {item["id"]: item["attempt"] for item in world.status("plan")["subtasks"]}


def _refs(world: World) -> Iterator[tuple[str, str]]:
    for line in git(world.root, "for-each-ref", "--format=%(refname) %(objectname)").splitlines():
        name, oid = line.split()
        # The name of a user's tip is its commit, which depends on the time, as what was merged by hand does. What was
        # given up may be kept twice.
        tree = git(world.root, "rev-parse", f"{oid}^{{tree}}")
        yield re.sub(r"(\+tips/|\+resolved/|discard-)[0-9a-f]+$", rf"\g<1>{tree}", name), oid


def _trees(world: World) -> dict[str, str]:
    """Commit → tree, of every commit that a ref reaches."""
    lines = git(world.root, "log", "--all", "--format=%H %T").splitlines()
    return dict(line.split() for line in lines)


def _certificates(state: Path, trees: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The newest of each subtask last, with trees for commits and without what depends on the time."""
    for path in sorted((state / "blobs").glob("*/*"), key=lambda path: path.stat().st_mtime_ns):
        try:
            found = json.loads(path.read_bytes())
        except ValueError:
            continue
        if "certificate" in path.name or "gitVersion" not in found:
            continue
        text = json.dumps({name: value for name, value in found.items() if name not in ("attempt", "previousEvent")})
        statement = json.loads(_as_trees(text, trees))
        for check in statement["checks"]:
            del check["durationMs"]
        for needed in statement["prerequisites"]:
            del needed["certificate"]
        yield statement


def _hidden(state: Path) -> Iterator[str]:
    """Everything below the state folder whose name is not one of the known, finished things."""
    known = re.compile(
        r"state\.(db|id|lock)|git\.lock|leases/[^/]+\.lock|worktrees/plan/[^/]+\.(json|lock)|blobs/../[0-9a-f]{64}"
        r"|sessions/[^/]+/(host\.err|output\.log|token|record\.json|turns\.json|alive|prompt\.md)"
        r"|deliveries/plan-[0-9a-f]+\.md|judge/(config|HEAD|frozen\.json|frozen/.*|objects/.*)"
    )
    for path in state.rglob("*"):
        name = str(path.relative_to(state))
        if path.is_file() and not known.fullmatch(name):
            yield name
