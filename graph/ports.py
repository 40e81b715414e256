"""What the shell of this package needs from the world: git worktrees, Sessions, a clock.

`worktrees/` and `sessions/` implement these; only `cli/wiring.py` names the implementations. Values cross, never
handles: specifications, hashes and facts, so that a subtask may run on another machine later. Methods of `Worktrees`
block and are called in worker threads; methods of `Sessions` are coroutines.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from coordinate_agents.graph.events import Event
from coordinate_agents.graph.model import SubtaskId
from coordinate_agents.graph.snapshot import Snapshot
from coordinate_agents.sessions.agent import (
    AgentSettings,
    CommandRequest,
    ResolvedAgent,
    TurnOutput,
    TurnReading,
    TurnRequest,
)
from coordinate_agents.sessions.model import (
    AgentTurn,
    Launch,
    Output,
    OutputForm,
    Question,
    ReadLimits,
    SessionEnd,
    SessionFacts,
    SessionId,
    SessionRecord,
    TurnLimits,
    WriteResult,
)
from coordinate_agents.sessions.turns.model import (
    Answer,
    Fact,
    RequestId,
    TurnId,
    TurnOutcome,
    TurnRecord,
    TurnSpec,
    TurnsView,
)
from coordinate_agents.worktrees.model import (
    Base,
    BranchGone,
    BringBackRequest,
    BroughtBack,
    CommitId,
    CommitOutcome,
    CommitRequest,
    Contents,
    Delivered,
    DeliveryRequest,
    Examination,
    ExamineRequest,
    FinishedMerge,
    Head,
    MergeConflict,
    Merged,
    MergeEnding,
    PinKind,
    PinsDropped,
    RefSnapshot,
    Refused,
    RemovalRequest,
    Removed,
    RepositoryFacts,
    SharedState,
    Worktree,
)


class Worktrees(Protocol):
    """One user repository, through the judge repository. Raises: WorktreeError. Every git call has a time limit."""

    @property
    def facts(self) -> RepositoryFacts: ...

    def freeze(self) -> str:
        """The user's filters, line-ending and exclude settings as JSON; later calls judge with these."""
        ...

    def resolve(self, commitish: str) -> CommitId:
        """The commit that the text names in the user's repository. Raises: NOT_A_REPOSITORY, TASK_GRAPH_INVALID."""
        ...

    def branch_of(self, commitish: str) -> str | None:
        """The full name of the branch, local or remote-tracking, that the text names; None for anything else."""
        ...

    def commits_beyond(self, base: CommitId, tip: CommitId) -> int | None:
        """How many commits the tip has that the base does not contain; None when one of them is gone."""
        ...

    def is_gone(self, commit: CommitId) -> bool:
        """Whether the repository has no such commit any more."""
        ...

    def check_names(self, graph: str, slugs: Sequence[str]) -> None:
        """Raise WORKTREE_CONFLICT when user branches make the Runtime's branch names impossible."""
        ...

    def refs(self) -> RefSnapshot:
        """Every user ref and stash entry now."""
        ...

    def shared_state(self) -> SharedState:
        """Digests of what in the shared git state can run code or lie."""
        ...

    def keep_tips(self, graph: str, snapshot: RefSnapshot) -> None:
        """Pin every ref tip and stash entry of the snapshot, so that no agent can make it unreachable."""
        ...

    def runtime_refs(self, graph: str) -> Mapping[str, CommitId]:
        """Every Runtime branch and pin of the graph, full name to commit."""
        ...

    def runtime_branches(self, graph: str) -> Mapping[str, CommitId]:
        """Every Runtime branch of the graph, full name to commit: of the refs above those in one folder."""
        ...

    def restore_refs(self, wanted: Mapping[str, CommitId]) -> tuple[str, ...]:
        """Set Runtime refs back to recorded values; returns the names that had to be changed."""
        ...

    def make_base(
        self, graph: str, slug: str, base: CommitId, heads: Sequence[Head], *, resolutions: Sequence[CommitId] = ()
    ) -> Base | MergeConflict:
        """The base of a dependent (contract section 5), pinned, and proved to contain every head.

        `base` is the graph's base commit. Order of the fold: head name. Deterministic. `resolutions` are recorded
        merges, used wherever their two parents meet.
        """
        ...

    def create(
        self,
        graph: str,
        slug: str,
        base: CommitId,
        *,
        root: str,
        nonce: str | None = None,
        resume_from: CommitId | None = None,
        known_tip: CommitId | None = None,
        frozen: str | None = None,
    ) -> Worktree:
        """Make the worktree on its branch (contract section 3). Raises: WORKTREE_CONFLICT; a failure leaves nothing.

        `nonce` was recorded before this call and is written into the lock reason. A half-made or whole worktree with
        the same nonce (a driver died here) is ours: it is finished or undone and made again. None: a fresh one.
        `resume_from`: put the branch there (a kept commit that contains base) instead of at base; then an existing
        branch of that name whose tip is that commit is used. Otherwise a branch of that name is never used, unless a
        record or a pin of this subtask knows its tip, or `known_tip` is that; then it is kept by a pin. `frozen`: the
        text of `freeze`, whose filters write the files; None: the latest one.
        """
        ...

    def recreate(
        self,
        graph: str,
        slug: str,
        worktree: Worktree,
        *,
        root: str,
        nonce: str | None = None,
        frozen: str | None = None,
    ) -> Worktree:
        """Lay a worktree whose folder is gone out again on its branch (or, when that is gone too, at its base).

        Drops only the registration that carries the record's nonce. Raises: WORKTREE_CONFLICT.
        """
        ...

    def is_missing(self, worktree: Worktree) -> bool:
        """Whether nothing is at the worktree's path."""
        ...

    def bring(self, worktree: Worktree, *, copy: Sequence[str], link: Sequence[str]) -> tuple[str, ...]:
        """Copy and link paths of the user's checkout into it. Raises: SETUP_FAILED, also for paths base tracks."""
        ...

    def is_intact(self, worktree: Worktree) -> str | None:
        """None when path, link files, admin folder, device, inode and nonce all agree; else what is wrong."""
        ...

    def mending(self, worktree: Worktree, damage: str) -> str:
        """The command that makes a worktree usable again of which `is_intact` said this."""
        ...

    def untracked(self, worktree: Worktree, frozen: str) -> tuple[str, ...]:
        """Untracked, not ignored paths; taken after setup as the baseline."""
        ...

    def note_cone(self, graph: str, slug: str, worktree: Worktree) -> Worktree:
        """The worktree with the cone that setup gave it, recorded. Raises: SETUP_FAILED for patterns that are none."""
        ...

    def tracked_changes(self, worktree: Worktree, frozen: str) -> tuple[str, ...]:
        """Tracked paths that differ from HEAD by the judge's own index."""
        ...

    def examine(self, request: ExamineRequest) -> Examination: ...

    def reread(self, request: ExamineRequest) -> tuple[CommitId | None, int]:
        """Fact 8: head, and the number of dirty paths, read again."""
        ...

    def head_of(self, worktree: Worktree) -> CommitId | None:
        """The commit at which the worktree stands on its branch now, read from files; None when it does not."""
        ...

    def commit_leftovers(self, request: CommitRequest) -> CommitOutcome: ...

    def pin(self, graph: str, slug: str, kind: PinKind, commit: CommitId) -> str:
        """Create the next free ``<kind>-<n>`` (or return the one that already holds the commit)."""
        ...

    def keep(self, graph: str, slug: str, worktree: Worktree) -> tuple[CommitId, ...]:
        """Pin HEAD, branch tip and every commit that only the worktree's reflogs or private refs hold."""
        ...

    def contains(self, commit: CommitId, ancestors: Sequence[CommitId]) -> tuple[CommitId, ...]:
        """The given commits that are NOT ancestors of `commit` (missing ones included); empty when all are."""
        ...

    def integrate(
        self, graph: str, base: CommitId, heads: Sequence[Head], *, resolutions: Sequence[CommitId] = ()
    ) -> Merged | MergeConflict:
        """Merge the reduced heads, in the given order, onto base. Moves no ref. Strict copy of all objects first."""
        ...

    def open_merge(
        self, graph: str, slug: str, base: CommitId, conflict: MergeConflict, *, root: str, frozen: str | None = None
    ) -> Worktree:
        """The worktree of this slug, in the middle of the conflict's merge as `git merge` would leave it.

        One that stands there already, or in which this merge was finished, is returned as it is. `base`: the commit
        whose attributes count in the merge. Raises: DIRTY_WORKTREE, WORKTREE_CONFLICT.
        """
        ...

    def user_identity(self) -> tuple[str, str] | None:
        """Name and address that the user's own git would commit with; None when it has none."""
        ...

    def finish_merge(
        self,
        graph: str,
        worktree: Worktree,
        base: CommitId,
        sides: tuple[CommitId, CommitId],
        ending: MergeEnding,
        *,
        frozen: str | None = None,
    ) -> FinishedMerge:
        """The commit with which a person ended the merge of the two sides, kept by a ref. Moves no branch.

        Raises: DIRTY_WORKTREE saying what is missing: paths in conflict, markers, another commit, changes beside it.
        """
        ...

    def parents_of(self, commit: CommitId) -> tuple[CommitId, ...]:
        """Up to three parents; empty when there is no such commit."""
        ...

    def give_up_merge(
        self, graph: str, slug: str, worktree: Worktree, target: CommitId, *, frozen: str | None = None
    ) -> CommitId | None:
        """Put the worktree back on its branch, clean at the target, whatever merge or changes stand in it.

        Everything that was there is pinned first, untracked files included; returns that commit, None when there was
        nothing of its own. Files that are untracked stay. Raises: CLEANUP_REFUSED when something cannot be kept so.
        """
        ...

    def conclude_merge(self, worktree: Worktree, ours: CommitId, commit: CommitId) -> None:
        """Leave the worktree clean on its branch at the commit that ended its merge. Repeated: no change."""
        ...

    def publish_integration(
        self, graph: str, commit: CommitId, *, expected: CommitId | None, root: str, frozen: str | None = None
    ) -> Worktree:
        """Move the integration branch by compare-and-swap and lay its worktree out at the commit."""
        ...

    def pristine(self, graph: str, slug: str, commit: CommitId, *, root: str, frozen: str | None = None) -> Worktree:
        """A detached worktree at the commit, for one check. Remove it with `remove_pristine`."""
        ...

    def restore_paths(
        self, worktree: Worktree, source: CommitId, paths: Sequence[str], *, frozen: str | None = None
    ) -> tuple[str, ...]:
        """Set these paths back to `source` in a pristine worktree (absent there: removed); returns them sorted.

        The caller matches patterns itself, against `changed(source, commit)`: there is one matcher, in graph/scope.py.
        """
        ...

    def remove_pristine(self, worktree: Worktree) -> None: ...

    def left_pristine(self, graph: str) -> tuple[Worktree, ...]:
        """Worktrees of checks whose process died; each is given to `remove_pristine` once nothing of it lives."""
        ...

    def contents(self, request: RemovalRequest) -> Contents:
        """What would go with a worktree that is removed, and why it would stay. Changes nothing."""
        ...

    def set_aside(self, request: RemovalRequest) -> CommitId | None:
        """A pinned `discard-<n>` commit of everything in the worktree, ignored files too; None: nothing to set aside.

        Twice gives the same commit. Raises: CLEANUP_REFUSED when something cannot be held by a commit, DISK_FULL.
        """
        ...

    def remove(self, request: RemovalRequest) -> Removed | Refused:
        """Remove an owned worktree that holds nothing else (contract section 9), or what `discarded` holds.

        Blocks for as long as deleting takes. Branch, pins and commits stay. Killed anywhere, the next call goes on.
        """
        ...

    def settle_removal(self, graph: str, slug: str, worktree: Worktree) -> None:
        """End a removal that was cut short: what was not decided goes back to its place, what was is deleted."""
        ...

    def delete_branch(self, graph: str, slug: str, *, is_result: bool = False) -> BranchGone | Refused | None:
        """Delete a Runtime branch by compare-and-swap when every commit of it is pinned; None: there is none.

        `is_result`: only when a ref of the user's contains it, too.
        """
        ...

    def restore_branch(
        self, graph: str, slug: str, worktree: Worktree, *, known: CommitId | None = None
    ) -> CommitId | None:
        """Make the branch of a kept worktree again that somebody deleted; where it is then. None: nothing to do.

        At the last commit of the worktree's HEAD, else at `known`, else at the newest kept one.
        """
        ...

    def lost_tip(self, graph: str, slug: str, worktree: Worktree, *, known: CommitId | None = None) -> CommitId | None:
        """Where `restore_branch` would make it again. Changes nothing."""
        ...

    def drop_pins(self, graph: str, *, is_dry: bool) -> PinsDropped:
        """Delete every pin of the graph. What only these held is lost at git's next gc: it is counted."""
        ...

    def bundle(self, graph: str, base: CommitId, path: str) -> bool:
        """Write the graph's branches and pins, without what base contains, to a file; False: there is nothing."""
        ...

    def patch(self, base: CommitId, head: CommitId) -> bytes:
        """The difference as `git apply` takes it. Raises: WorktreeError when it is larger than 64 MiB."""
        ...

    def deliver(self, request: DeliveryRequest) -> Delivered:
        """Make a branch of the user's, or move it forward, by compare-and-swap. Repeated: not moved again.

        Raises: INVALID_USAGE for a name that is none; WORKTREE_CONFLICT when it is checked out, or holds other work.
        """
        ...

    def tip_of_branch(self, branch: str) -> CommitId | None:
        """Where a local branch of the user's stands; None when there is none."""
        ...

    def subjects(self, base: CommitId, head: CommitId, *, limit: int) -> tuple[tuple[CommitId, str], ...]:
        """Id and subject of the commits that head adds, merges left out, oldest first; at most `limit`."""
        ...

    def remotes(self) -> tuple[str, ...]:
        """Names of the repository's remotes, in the order of its configuration."""
        ...

    def bring_back(self, request: BringBackRequest, *, root: str, frozen: str) -> BroughtBack:
        """A removed worktree again, on its branch, with everything that its discard commit holds as it was.

        Called again with the same nonce it goes on. Raises: WORKTREE_CONFLICT when its branch moved, or its place is
        taken; DISK_FULL.
        """
        ...

    def tree_of(self, commit: CommitId) -> str:
        """The tree's id. Raises: EVIDENCE_REJECTED when there is no such commit."""
        ...

    def changed(self, base: CommitId, head: CommitId) -> tuple[str, ...]:
        """Paths that differ, both sides of renames, sorted."""
        ...

    def diff(self, base: CommitId, head: CommitId, *, stat: bool, max_bytes: int) -> str:
        """A unified diff (or its summary) for people; cut at `max_bytes` with a last line that says so."""
        ...


class Sessions(Protocol):
    """Custody of processes. Raises: SessionError. A Session outlives the caller unless it is of kind "command".

    Agents are given turns through `turns`; commands are started and waited for as they are.
    """

    def turns(self, *, read_only: bool = False) -> "AbstractAsyncContextManager[Turns]":
        """The turns of these Sessions inside the block; leaving it ends no agent.

        `read_only`: who gives no turns writes no record of them.
        """
        ...

    async def start(self, launch: Launch) -> SessionRecord:
        """Start a host and its child; returns once the host says so. A child that ended at once is not an error."""
        ...

    async def wait(self, session_id: SessionId) -> SessionEnd:
        """Wait for the child's end, also of a Session that another process started. Cancelling leaves it running.

        A host that died without a final record: its tree is searched and ended first, then cause "host-lost".
        """
        ...

    async def look(self, session_id: SessionId) -> SessionFacts: ...

    def turn_record(self, session_id: SessionId) -> TurnRecord | None:
        """What was last written of its turns; None when it never had one. Reads one small file."""
        ...

    async def question(self, session_id: SessionId) -> Question | None:
        """What the child asks now; None when it asks nothing, or has ended."""
        ...

    async def question_change(self, session_id: SessionId, known: Question | None) -> Question | None:
        """What is asked once that is not `known` any more. Never returns when the child ends: `wait` does."""
        ...

    async def stall_change(self, session_id: SessionId, *, is_stalled: bool) -> None:
        """Wait until it is the other way round: nothing new for too long, or something again. As `question_change`."""
        ...

    async def close(
        self, session_id: SessionId, *, bound_s: float | None = None, graceful: bool = True
    ) -> tuple[str, ...]:
        """End the tree within the bound; returns survivors. Closing twice, or an ended one, is no error."""
        ...

    async def list(self) -> tuple[SessionFacts, ...]:
        """A look at every Session of this repository, in the order of their ids; ended ones too."""
        ...

    async def read(
        self,
        session_id: SessionId,
        *,
        cursor: int | None = None,
        max_bytes: int = 65536,
        max_lines: int | None = None,
        wait_ms: int = 0,
        form: OutputForm = "plain",
    ) -> Output:
        """Output from the cursor on (None: the last `max_bytes`), also after the end. `wait_ms` ≤ 25000."""
        ...

    def look_now(
        self, session_id: SessionId, limits: ReadLimits | None = None, *, wait_ms: int = 0
    ) -> tuple[SessionFacts, Output | None] | None:
        """`look`, with limits also `read`, of a Session that a host holds, in one question and without an event loop.

        None for every other one: `look` and `read` say what became of it. Blocks; bounded as they are. Raises as
        `read`, where it reads.
        """
        ...

    async def raw_output(self, session_id: SessionId, *, cursor: int | None) -> tuple[bytes, int, int, int]:
        """Redacted raw bytes for a screen: (data, cursor, next cursor, dropped bytes)."""
        ...

    async def write(
        self, session_id: SessionId, text: str, *, submit: bool = False, is_answer: bool = False
    ) -> WriteResult:
        """Type text the adapter's way; `submit`: send it off. Nothing passes a shell.

        Not delivered while a dialog is shown in which Enter means yes, unless it `is_answer` to that.
        """
        ...

    async def keys(self, session_id: SessionId, names: Sequence[str]) -> WriteResult:
        """Press named keys of a closed list, never as a paste."""
        ...

    async def hold(self, session_id: SessionId) -> None:
        """Let no deadline run until `release`: a person works where its program does."""
        ...

    async def release(self, session_id: SessionId) -> None:
        """Let the deadlines run again; the time between counts in none."""
        ...

    async def set_limits(self, session_id: SessionId, limits: TurnLimits, *, input_timeout_s: float) -> None:
        """Let other deadlines hold for the turn that goes on, counted from its beginning."""
        ...

    async def turn_end(self, session_id: SessionId, turn: str) -> AgentTurn:
        """The end of such an agent's turn, as its host saw it, also when the Session has ended."""
        ...

    async def forget(self, session_id: SessionId) -> int:
        """Delete the folder of a Session that ended, with all that it printed; bytes freed, 0 when there is none.

        Raises: SESSION_STATE_CONFLICT while anything of it may live.
        """
        ...

    async def end_strays(self, markers: Sequence[str], paths: Sequence[str]) -> tuple[str, ...]:
        """End what lives of trees whose host is gone, found by marker, cwd, root or open files; survivors."""
        ...


class Turns(Protocol):
    """The turns of Sessions, coordinated by this process: at most one of each, with one end. Raises: SessionError."""

    async def start_turn(
        self, session: SessionId, spec: TurnSpec, *, turn: TurnId | None = None, is_wanted: Callable[[], bool] = ...
    ) -> TurnId:
        """Give the agent a turn, in its living process or in one that is started; returns when it has it.

        `is_wanted` is asked again after every wait; when it says no, what was started is ended again.
        """
        ...

    async def take_over(self, session: SessionId, turn: TurnId, spec: TurnSpec) -> None:
        """Coordinate a turn of whose end nobody knows; one that was started here is left as it is."""
        ...

    async def wait_for_turn(self, session: SessionId, turn: TurnId) -> TurnOutcome:
        """How it ended, once it has. Cancelling the wait is not cancelling the turn."""
        ...

    def observe(self, session: SessionId, fact: Fact) -> None:
        """A fact about its process that was seen from here, such as the end of the turn."""
        ...

    async def dispose_session(
        self, session: SessionId, *, bound_s: float | None = None, graceful: bool = True
    ) -> tuple[str, ...]:
        """End the Session's tree with whatever goes on in it; returns survivors. Of none there is nothing to end."""
        ...

    async def resolve_permission(self, session: SessionId, request: RequestId, answer: Answer) -> WriteResult:
        """Answer what it asks. Raises: SESSION_STATE_CONFLICT for what it does not ask, or any more."""
        ...

    async def interrupt(self, session: SessionId) -> None:
        """Ask its agent, in the agent's own way, to stop what it does."""
        ...

    async def write_input(self, session: SessionId, text: str, *, submit: bool = False) -> WriteResult:
        """Type text the adapter's way; see `Sessions.write`."""
        ...

    async def get_state(self, session: SessionId) -> TurnsView: ...


class Screen(Protocol):
    """A terminal as a person would see it. The lines are the program's own text; the cursor counts from 0."""

    @property
    def lines(self) -> tuple[str, ...]: ...

    @property
    def cursor_row(self) -> int: ...

    @property
    def cursor_column(self) -> int: ...

    @property
    def is_alternate(self) -> bool: ...


class Terminal(Protocol):
    """The terminal that the person who called sits at."""

    async def join(
        self, sessions: Sessions, session_id: SessionId, *, is_writing: bool, is_raw: bool, detach_key: str
    ) -> bool:
        """Join it to the Session's until the person leaves or the Session ends (True). It is restored on every way."""
        ...


class Agents(Protocol):
    """From settings to something that can be started. Raises: SessionError EXECUTABLE_NOT_FOUND, SPAWN_FAILED, …"""

    def resolve(self, settings: AgentSettings) -> ResolvedAgent:
        """Exact and fail-closed: the configured executable or an error that names every place looked at."""
        ...

    def require_supported(self, settings: AgentSettings) -> None:
        """Raise UNSUPPORTED_CAPABILITY or INVALID_ADAPTER_CONFIG for a driver that this agent cannot have."""
        ...

    def is_same(self, agent: ResolvedAgent, record: SessionRecord) -> bool:
        """Whether the Session's process was started with the agent as it is configured now."""
        ...

    def turn(self, request: TurnRequest) -> Launch:
        """The launch of one agent turn; writes the prompt file when delivery is "file"."""
        ...

    def typed(self, session_id: SessionId) -> str:
        """The prompt of a Session whose delivery is paste: to be typed, once."""
        ...

    def next_turn(self, session_id: SessionId, prompt: str, *, turn: int) -> None:
        """Lay out the prompt of a further turn, to be typed; what the turn before submitted is set aside."""
        ...

    def says_idle(self, agent: ResolvedAgent) -> bool:
        """Whether patterns tell when its turn is over; without them only silence does."""
        ...

    def shown(self, output: str, *, columns: int, rows: int) -> str:
        """The last lines of the screen that the end of the raw output draws, as a person would read them."""
        ...

    def says_ready(self, agent: ResolvedAgent) -> bool:
        """Whether patterns tell when it takes a prompt; its host then waits for them by itself."""
        ...

    def is_idle(self, agent: ResolvedAgent, output: str, *, columns: int, rows: int) -> bool:
        """Whether the screen that the raw output draws looks as if the turn were over: a trigger, never proof."""
        ...

    def idle_s(self, agent: ResolvedAgent) -> float:
        """How long nothing must be printed before `is_idle` is asked."""
        ...

    def reading(
        self,
        agent: ResolvedAgent,
        session_id: SessionId,
        *,
        marker: str,
        tail: str,
        has_failed: bool,
        now: float,
        known: str | None = None,
        turn: str = "",
        output: TurnOutput | None = None,
    ) -> TurnReading:
        """What the output of a turn that ended says; `tail` is its end, `known` the conversation that it took up.

        `turn` is its name in the Session; `output` what it drew, of a program that stays.
        """
        ...

    def session_around(self) -> SessionId | None:
        """The living Session whose process tree this process is in, proved by mark and ancestry; None when there is
        none."""
        ...

    def submit(self, session_id: SessionId, text: str) -> bool:
        """Write the submit file, with the agent's own words; whether all of them fitted."""
        ...

    def has_submitted(self, session_id: SessionId) -> bool:
        """Whether the agent's submit file is there."""
        ...

    async def submission(self, session_id: SessionId) -> None:
        """Wait until the submit file is there. Where the system cannot tell it never returns: look now and then."""
        ...

    def submitted(self, session_id: SessionId) -> str:
        """What the agent wrote to its submit file: its own words, unverified, at most 2 KiB; empty when nothing."""
        ...

    def command(self, request: CommandRequest) -> Launch:
        """The launch of a check, setup or teardown command."""
        ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, for records."""
        ...

    def monotonic(self) -> float: ...


class LiveView(Protocol):
    """The screen of the person who called."""

    def show(self, graph: str) -> None:
        """Show the graph until the person leaves. Raises: UNSUPPORTED_CAPABILITY when what draws is not installed.

        KeyboardInterrupt after a signal that ends programs. The terminal is restored on every way.
        """
        ...


class Progress(Protocol):
    """Somebody who watches a drive. Called in the event loop's thread: every method is quick and never raises."""

    @property
    def wants_output(self) -> bool:
        """Whether `output` should be called at all."""
        ...

    def begin(self, snapshot: Snapshot) -> None: ...

    def event(self, snapshot: Snapshot, event: Event, time: float) -> None:
        """An event that was stored and folded; `time` is the event's."""
        ...

    def output(self, subtask: SubtaskId, last_line: str) -> None:
        """The last line that a running subtask's agent printed; at most once a second per subtask."""
        ...

    def notice(self, line: str) -> None:
        """Something that the person who drives must know at once."""
        ...

    def end(self, snapshot: Snapshot) -> None: ...
