"""GitWorktrees: one user repository as the graph's shell sees it. Every method calls the one module that does it.

Methods block, are thread-safe, and raise WorktreeError. `close` ends the kept git process.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from coordinate_agents.worktrees import (
    base as bases,
)
from coordinate_agents.worktrees import (
    branches,
    bring,
    bring_back,
    bundle,
    commits,
    cone,
    deliver,
    diff,
    dirty,
    durable,
    examine,
    frozen,
    giving_up,
    integrate,
    merge_end,
    mid_merge,
    ownership,
    pins,
    position,
    pristine,
    refs,
    refusals,
    removal,
    repository,
    resolutions,
    shared,
)
from coordinate_agents.worktrees import (
    create as creation,
)
from coordinate_agents.worktrees import (
    set_aside as setting_aside,
)
from coordinate_agents.worktrees.files import ensure_text, read_regular
from coordinate_agents.worktrees.judge import Judge
from coordinate_agents.worktrees.model import (
    BRANCH_PREFIX,
    INTEGRATION_SLUG,
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

_LATEST_FROZEN = "frozen.json"


class GitWorktrees:
    """Worktrees, refs and evidence of one repository. `frozen` None: the settings of the latest `freeze`."""

    def __init__(self, facts: RepositoryFacts) -> None:
        self._judge = Judge.open(facts)

    @classmethod
    def open(cls, root: str, *, state_root: str | None = None) -> "GitWorktrees":
        """The repository that holds the folder. Raises: NOT_A_REPOSITORY, REPOSITORY_UNSUPPORTED."""
        return cls(repository.open_repository(root, state_root=state_root))

    def close(self) -> None:
        self._judge.close()

    def __enter__(self) -> "GitWorktrees":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def facts(self) -> RepositoryFacts:
        return self._judge.facts

    def freeze(self) -> str:
        self._judge.copy_shallow()
        text = frozen.freeze(self.facts).to_json()
        ensure_text(self._latest_frozen, text.encode())
        return text

    def resolve(self, commitish: str) -> CommitId:
        return repository.resolve(self._judge, commitish)

    def branch_of(self, commitish: str) -> str | None:
        return repository.branch_of(self._judge, commitish)

    def commits_beyond(self, base: CommitId, tip: CommitId) -> int | None:
        return repository.commits_beyond(self._judge, base, tip)

    def is_gone(self, commit: CommitId) -> bool:
        return self._judge.commit(commit) != commit

    def check_names(self, graph: str, slugs: Sequence[str]) -> None:
        known = ownership.recorded_slugs(self.facts, graph)
        refs.check_names(self._judge, graph, [*slugs, INTEGRATION_SLUG], known=known)

    def refs(self) -> RefSnapshot:
        return refs.snapshot(self._judge)

    def shared_state(self) -> SharedState:
        return shared.shared_state(self.facts)

    def keep_tips(self, graph: str, snapshot: RefSnapshot) -> None:
        pins.keep_tips(self._judge, graph, snapshot)

    def runtime_refs(self, graph: str) -> Mapping[str, CommitId]:
        return refs.runtime_refs(self._judge, graph)

    def runtime_branches(self, graph: str) -> Mapping[str, CommitId]:
        return refs.read_refs(self.facts.common_dir, [f"{BRANCH_PREFIX}/{graph}"])

    def restore_refs(self, wanted: Mapping[str, CommitId]) -> tuple[str, ...]:
        pins.keep_moved(self._judge, wanted)
        return refs.restore_refs(self._judge, wanted)

    def make_base(
        self, graph: str, slug: str, base: CommitId, heads: Sequence[Head], *, resolutions: Sequence[CommitId] = ()
    ) -> Base | MergeConflict:
        return bases.make_base(self._judge, graph, slug, base, heads, resolutions=resolutions)

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
        settings = self._settings(frozen)
        return creation.create(
            self._judge,
            graph,
            slug,
            base,
            root=root,
            frozen=settings,
            nonce=nonce,
            resume_from=resume_from,
            known_tip=known_tip,
        )

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
        settings = self._settings(frozen)
        return creation.recreate(self._judge, graph, slug, worktree, root=root, frozen=settings, nonce=nonce)

    def is_missing(self, worktree: Worktree) -> bool:
        return ownership.is_missing(worktree)

    def bring(self, worktree: Worktree, *, copy: Sequence[str], link: Sequence[str]) -> tuple[str, ...]:
        def is_tracked(name: str) -> bool:
            return bool(self._judge.git("--literal-pathspecs", "ls-tree", "-z", worktree.base, "--", name).out)

        return bring.bring(Path(self.facts.root), Path(worktree.path), copy=copy, link=link, is_tracked=is_tracked)

    def is_intact(self, worktree: Worktree) -> str | None:
        return ownership.is_intact(self.facts, worktree)

    def mending(self, worktree: Worktree, damage: str) -> str:
        return refusals.mending(worktree, damage)

    def untracked(self, worktree: Worktree, frozen: str) -> tuple[str, ...]:
        return dirty.untracked(self._judge, worktree, frozen)

    def note_cone(self, graph: str, slug: str, worktree: Worktree) -> Worktree:
        return cone.note_cone(self.facts, graph, slug, worktree)

    def tracked_changes(self, worktree: Worktree, frozen: str) -> tuple[str, ...]:
        return dirty.tracked_changes(self._judge, worktree, frozen)

    def examine(self, request: ExamineRequest) -> Examination:
        return examine.examine(self._judge, request)

    def reread(self, request: ExamineRequest) -> tuple[CommitId | None, int]:
        return examine.reread(self._judge, request)

    def head_of(self, worktree: Worktree) -> CommitId | None:
        found = position.locate(self.facts, worktree)
        return found.head if found.state == "on-branch" else None

    def commit_leftovers(self, request: CommitRequest) -> CommitOutcome:
        return commits.commit_leftovers(self._judge, request)

    def pin(self, graph: str, slug: str, kind: PinKind, commit: CommitId) -> str:
        if kind == "verified":
            return durable.pin_verified(self._judge, graph, slug, commit)
        return pins.pin(self._judge, graph, slug, kind=kind, commit=commit)

    def keep(self, graph: str, slug: str, worktree: Worktree) -> tuple[CommitId, ...]:
        return pins.keep(self._judge, graph, slug, worktree)

    def contains(self, commit: CommitId, ancestors: Sequence[CommitId]) -> tuple[CommitId, ...]:
        return bases.contains(self._judge, commit, ancestors)

    def integrate(
        self, graph: str, base: CommitId, heads: Sequence[Head], *, resolutions: Sequence[CommitId] = ()
    ) -> Merged | MergeConflict:
        return integrate.integrate(self._judge, graph, base, heads, resolutions=resolutions)

    def open_merge(
        self, graph: str, slug: str, base: CommitId, conflict: MergeConflict, *, root: str, frozen: str | None = None
    ) -> Worktree:
        settings = self._settings(frozen)
        return mid_merge.open_merge(self._judge, graph, slug, base, conflict, root=root, frozen=settings)

    def user_identity(self) -> tuple[str, str] | None:
        return merge_end.identity_of_user(self.facts)

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
        scene = mid_merge.scene_of(self._judge, base, *sides)
        done = merge_end.finished_merge(self._judge, worktree, scene, ending, frozen=self._settings(frozen))
        resolutions.record(self._judge, graph, done.commit)
        pins.pin(self._judge, graph, worktree.branch.rpartition("/")[2], kind="kept", commit=done.commit)
        return done

    def parents_of(self, commit: CommitId) -> tuple[CommitId, ...]:
        return tuple(resolutions.parents_of(self._judge, commit))

    def give_up_merge(
        self, graph: str, slug: str, worktree: Worktree, target: CommitId, *, frozen: str | None = None
    ) -> CommitId | None:
        return giving_up.give_up(self._judge, graph, slug, worktree, target, frozen=self._settings(frozen))

    def conclude_merge(self, worktree: Worktree, ours: CommitId, commit: CommitId) -> None:
        merge_end.conclude(self._judge, worktree, ours, commit)

    def publish_integration(
        self, graph: str, commit: CommitId, *, expected: CommitId | None, root: str, frozen: str | None = None
    ) -> Worktree:
        settings = self._settings(frozen)
        return creation.publish_integration(self._judge, graph, commit, expected=expected, root=root, frozen=settings)

    def pristine(self, graph: str, slug: str, commit: CommitId, *, root: str, frozen: str | None = None) -> Worktree:
        return pristine.pristine(self._judge, graph, slug, commit, root=root, frozen=self._settings(frozen))

    def restore_paths(
        self, worktree: Worktree, source: CommitId, paths: Sequence[str], *, frozen: str | None = None
    ) -> tuple[str, ...]:
        return diff.restore_paths(self._judge, worktree, source, paths, frozen=self._settings(frozen))

    def remove_pristine(self, worktree: Worktree) -> None:
        pristine.remove_pristine(self._judge, worktree)

    def left_pristine(self, graph: str) -> tuple[Worktree, ...]:
        """Worktrees of checks whose process died; each may be given to `remove_pristine`."""
        return pristine.left_pristine(self.facts, graph)

    def contents(self, request: RemovalRequest) -> Contents:
        return removal.contents(self._judge, request)

    def set_aside(self, request: RemovalRequest) -> CommitId | None:
        return setting_aside.set_aside(self._judge, request)

    def remove(self, request: RemovalRequest) -> Removed | Refused:
        return removal.remove(self._judge, request)

    def settle_removal(self, graph: str, slug: str, worktree: Worktree) -> None:
        removal.settle(self._judge, graph, slug, worktree)

    def delete_branch(self, graph: str, slug: str, *, is_result: bool = False) -> BranchGone | Refused | None:
        return branches.delete_branch(self._judge, graph, slug, is_result=is_result)

    def restore_branch(
        self, graph: str, slug: str, worktree: Worktree, *, known: CommitId | None = None
    ) -> CommitId | None:
        return branches.restore_branch(self._judge, graph, slug, worktree, known=known)

    def lost_tip(self, graph: str, slug: str, worktree: Worktree, *, known: CommitId | None = None) -> CommitId | None:
        return branches.lost_tip(self._judge, graph, slug, worktree, known=known)

    def drop_pins(self, graph: str, *, is_dry: bool) -> PinsDropped:
        return branches.drop_pins(self._judge, graph, is_dry=is_dry)

    def bundle(self, graph: str, base: CommitId, path: str) -> bool:
        return bundle.bundle(self._judge, graph, base, path)

    def patch(self, base: CommitId, head: CommitId) -> bytes:
        return bundle.patch(self._judge, base, head)

    def deliver(self, request: DeliveryRequest) -> Delivered:
        return deliver.deliver(self._judge, request)

    def tip_of_branch(self, branch: str) -> CommitId | None:
        return deliver.tip_of_branch(self._judge, branch)

    def subjects(self, base: CommitId, head: CommitId, *, limit: int) -> tuple[tuple[CommitId, str], ...]:
        return deliver.subjects(self._judge, base, head, limit=limit)

    def remotes(self) -> tuple[str, ...]:
        return deliver.remotes(self._judge)

    def bring_back(self, request: BringBackRequest, *, root: str, frozen: str) -> BroughtBack:
        return bring_back.bring_back(self._judge, request, root=root, frozen=frozen)

    def tree_of(self, commit: CommitId) -> str:
        return self._judge.tree_of(commit)

    def changed(self, base: CommitId, head: CommitId) -> tuple[str, ...]:
        return diff.changed(self._judge, base, head)

    def diff(self, base: CommitId, head: CommitId, *, stat: bool, max_bytes: int) -> str:
        return diff.diff(self._judge, base, head, stat=stat, max_bytes=max_bytes)

    @property
    def _latest_frozen(self) -> Path:
        return Path(self._judge.git_dir, _LATEST_FROZEN)

    def _settings(self, given: str | None) -> str:
        """What was given, else the latest record: the configuration as it is now may be what an agent wrote."""
        if given is not None:
            return given
        text = read_regular(self._latest_frozen)
        return text.decode() if text is not None else self.freeze()
