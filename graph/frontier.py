"""Where every subtask stands: waiting, ready, blocked, running or ended. Incremental; decides nothing else.

A `Frontier` is built once from the edges and then told of each change of a stored state. What it shows is computed,
never stored: a subtask that has not started is

- blocked when a prerequisite failed, stopped or is blocked, or when its own base conflicts;
- ready when every prerequisite succeeded;
- waiting otherwise.

Rule: two counters for each subtask, "prerequisites not succeeded" and "prerequisites bad". The problem this causes:
being bad is transitive, so one failure must reach every descendant. Next rule: only an idle subtask passes badness
on, and it tells its dependents only when it turns bad or good, not at every change of its counter. So each edge is
touched at most once per change, a change costs what it changes, and going back (a failed subtask is made ready again)
is the same walk with the other sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableSet, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:  # read verbs use the frontier and never the model
    from coordinate_agents.graph.model import SubtaskId

# Stored states. idle: never started, or made ready again.
RunState = Literal["idle", "running", "succeeded", "failed", "stopped", "base-conflict", "base-missing"]
Place = Literal["waiting", "ready", "blocked", "running", "succeeded", "failed", "stopped"]

PLACES: Final[tuple[Place, ...]] = ("ready", "waiting", "blocked", "running", "succeeded", "failed", "stopped")

# The stage of a failure that leaves a subtask blocked: what its base would be made of is gone.
BASE_STAGE: Final = "base"
# No base can be made of its prerequisites: they do not merge, or the verified commit of one is gone.
BASELESS: Final = frozenset({"base-conflict", "base-missing"})
# States that block every idle descendant.
_BAD: Final = frozenset({"failed", "stopped"}) | BASELESS
_SHOWN: Final[Mapping[RunState, Place]] = {
    "running": "running",
    "succeeded": "succeeded",
    "failed": "failed",
    "stopped": "stopped",
    "base-conflict": "blocked",
    "base-missing": "blocked",
}


class Frontier:
    """The places of all subtasks of one graph. Not shared between threads.

    Invariant: the edges form no cycle (the document was checked); every id named by an edge is a key.
    """

    def __init__(
        self,
        depends_on: Mapping[SubtaskId, Sequence[SubtaskId]],
        states: Mapping[SubtaskId, RunState] | None = None,
    ) -> None:
        """Subtasks without a state are idle. Linear. Raises: KeyError for an id that is not a key of `depends_on`."""
        self._needs: dict[SubtaskId, tuple[SubtaskId, ...]] = {
            subtask: tuple(dict.fromkeys(needed)) for subtask, needed in depends_on.items()
        }
        self._states: dict[SubtaskId, RunState] = dict.fromkeys(self._needs, "idle")
        self._dependents: dict[SubtaskId, list[SubtaskId]] = {subtask: [] for subtask in self._needs}
        for subtask, needed in self._needs.items():
            for other in needed:
                self._dependents[other].append(subtask)
        self._unmet = {subtask: len(needed) for subtask, needed in self._needs.items()}
        self._bad = dict.fromkeys(self._needs, 0)
        self._members: dict[Place, set[SubtaskId]] = {place: set() for place in PLACES}
        self._places: dict[SubtaskId, Place] = {}
        for subtask in self._needs:
            self._place(subtask)
        for subtask, state in (states or {}).items():
            self.set(subtask, state)

    def set(self, subtask: SubtaskId, state: RunState) -> frozenset[SubtaskId]:
        """Store the state; return every subtask whose place changed. Raises: KeyError. Cost: the edges that change."""
        before = self._states[subtask]
        if before == state:
            return frozenset()
        was_bad = self._is_bad(subtask)
        self._states[subtask] = state
        touched = {subtask}
        if (before == "succeeded") != (state == "succeeded"):
            step = -1 if state == "succeeded" else 1
            for dependent in self._dependents[subtask]:
                self._unmet[dependent] += step
                touched.add(dependent)
        if self._is_bad(subtask) != was_bad:
            self._spread(subtask, -1 if was_bad else 1, touched)
        return frozenset(each for each in touched if self._place(each))

    def state(self, subtask: SubtaskId) -> RunState:
        return self._states[subtask]

    def place(self, subtask: SubtaskId) -> Place:
        return self._places[subtask]

    def ready(self) -> AbstractSet[SubtaskId]:
        """The ready subtasks: a live view without an order. Sort before showing; copy before changing states."""
        return self._members["ready"]

    def members(self, place: Place) -> AbstractSet[SubtaskId]:
        """The subtasks of one place: a live view without an order."""
        return self._members[place]

    def counts(self) -> Mapping[Place, int]:
        """How many subtasks stand in each place, zeros included."""
        return {place: len(self._members[place]) for place in PLACES}

    @property
    def is_ended(self) -> bool:
        """Nothing runs and nothing can start."""
        return not self._members["running"] and not self._members["ready"]

    def blockers(self, subtask: SubtaskId) -> tuple[SubtaskId, ...]:
        """Who blocks it, sorted: the nearest failed, stopped or conflicting ancestors. Empty when it is not blocked.

        A subtask whose own base cannot be made names itself. Costs the blocked ancestors; for many subtasks at once use
        `all_blockers`.
        """
        if self._states[subtask] in BASELESS:
            return (subtask,)
        roots: set[SubtaskId] = set()
        if self._states[subtask] != "idle":
            return ()
        seen = {subtask}
        stack = [subtask]
        while stack:
            for needed in self._needs[stack.pop()]:
                if self._states[needed] in _BAD:
                    roots.add(needed)
                elif needed not in seen and self._is_bad(needed):
                    seen.add(needed)
                    stack.append(needed)
        return tuple(sorted(roots))

    def all_blockers(self, *, limit: int = 8) -> Mapping[SubtaskId, tuple[SubtaskId, ...]]:
        """The first `limit` blockers of every blocked subtask, in one linear pass."""
        found: dict[SubtaskId, tuple[SubtaskId, ...]] = {}
        for subtask in self._blocked_in_order():
            if self._states[subtask] in BASELESS:
                found[subtask] = (subtask,)
                continue
            roots: set[SubtaskId] = set()
            for needed in self._needs[subtask]:
                if self._states[needed] in _BAD:
                    roots.add(needed)
                else:
                    roots.update(found.get(needed, ()))
            found[subtask] = tuple(sorted(roots)[:limit])
        return found

    def _is_bad(self, subtask: SubtaskId) -> bool:
        state = self._states[subtask]
        return state in _BAD or (state == "idle" and self._bad[subtask] > 0)

    def _spread(self, origin: SubtaskId, step: int, touched: MutableSet[SubtaskId]) -> None:
        """Tell the dependents that `origin` turned bad (1) or good (-1), and theirs as far as that turns them."""
        turned = [origin]
        while turned:
            for dependent in self._dependents[turned.pop()]:
                count = self._bad[dependent] + step
                assert count >= 0, dependent
                self._bad[dependent] = count
                touched.add(dependent)
                # From 0 to 1, or from 1 to 0: this dependent itself turned, if it has not started.
                if count == (1 if step == 1 else 0) and self._states[dependent] == "idle":
                    turned.append(dependent)

    def _place(self, subtask: SubtaskId) -> bool:
        """Compute the place again; whether it changed."""
        state = self._states[subtask]
        place: Place
        if state != "idle":
            place = _SHOWN[state]
        elif self._bad[subtask]:
            place = "blocked"
        else:
            place = "waiting" if self._unmet[subtask] else "ready"
        before = self._places.get(subtask)
        if before == place:
            return False
        if before is not None:
            self._members[before].discard(subtask)
        self._members[place].add(subtask)
        self._places[subtask] = place
        return True

    def _blocked_in_order(self) -> Iterator[SubtaskId]:
        """The blocked subtasks, prerequisites first."""
        blocked = self._members["blocked"]
        left = {each: sum(1 for needed in self._needs[each] if needed in blocked) for each in blocked}
        free = [each for each in blocked if not left[each]]
        while free:
            subtask = free.pop()
            yield subtask
            for dependent in self._dependents[subtask]:
                if dependent in left:
                    left[dependent] -= 1
                    if not left[dependent]:
                        free.append(dependent)
