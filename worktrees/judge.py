"""The judge repository: the private bare repository in which the Runtime reads, judges and merges.

Contract section 4. It has the user's object format, the user's objects as alternates, a fixed configuration and its own
HEAD and index, so that nothing an agent can write (configuration, hooks, attributes, grafts, replace refs, caches, the
`.git` file of a worktree) changes what git says or makes git run something. The user's git dir is touched only by
`user_git`: plumbing, explicit places, hooks off.
"""

import contextlib
import errno
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.cat_file import ObjectName, ObjectReader
from coordinate_agents.worktrees.commit_objects import WRITTEN_COMMIT, CommitReader
from coordinate_agents.worktrees.crashpoints import crash_point
from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.files import ensure_text, identity, read_regular
from coordinate_agents.worktrees.frozen import Frozen
from coordinate_agents.worktrees.git import (
    DEFAULT_MAX_BYTES,
    DEFAULT_TIMEOUT_S,
    GitResult,
    config_environment,
    git_program,
    inherited_environment,
    run,
    start,
)
from coordinate_agents.worktrees.judge_settings import CONFIG, ENVIRONMENT, USER_OVERRIDES
from coordinate_agents.worktrees.layouts import Layouts
from coordinate_agents.worktrees.loose import is_loose_commit, write_loose
from coordinate_agents.worktrees.model import RepositoryFacts
from coordinate_agents.worktrees.plain_files import PlainFiles
from coordinate_agents.worktrees.ref_changes import RefChanger, RefusedError
from coordinate_agents.worktrees.tree_objects import TreeReader, parse_tree

# What a killed process left (a temporary index, a half-made judge) is removed by the next one after this time.
_STALE_S: Final = 24 * 3600.0
# What somebody put into the object store or did to it; every other refusal is the machine's.
_IN_THE_WAY: Final = frozenset(
    (errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EACCES, errno.EPERM)
)


class Judge:
    """The judge repository of one user repository. Thread-safe. `close` ends the kept processes."""

    def __init__(self, facts: RepositoryFacts) -> None:
        self.facts = facts
        self.git_dir = str(Path(facts.state_dir) / "judge")
        self._objects = str(Path(facts.common_dir) / "objects")
        self._environment = inherited_environment() | ENVIRONMENT
        self._reader = ObjectReader(self._start_reader, f"{facts.common_dir}/objects")
        self.commits = CommitReader(self._reader)
        self.trees = TreeReader(self._reader, self.commits)
        self.plain_files = PlainFiles(self._reader, self.trees)
        self.layouts = Layouts()
        self._changer = RefChanger(self._start_ref_changer)
        self._lock = threading.Lock()
        self._seen: tuple[object, ...] = ()

    @classmethod
    def open(cls, facts: RepositoryFacts) -> "Judge":
        """The judge of this repository, made if there is none, its fixed files checked and repaired."""
        git_program()
        judge = cls(facts)
        if not Path(judge.git_dir, "HEAD").exists():
            judge._create()
        judge._verify()
        judge._sweep()
        return judge

    def close(self) -> None:
        self._reader.close()
        self._changer.close()

    def __enter__(self) -> "Judge":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def git(
        self,
        *args: str,
        stdin: bytes | None = None,
        ok: Collection[int] = (0,),
        timeout_s: float = DEFAULT_TIMEOUT_S,
        index: str | None = None,
        work_tree: str | None = None,
        frozen: str | None = None,
        write_objects: bool = False,
        max_bytes: int = DEFAULT_MAX_BYTES,
        env: Mapping[str, str] | None = None,
    ) -> GitResult:
        """Run git in the judge repository. Raises: WorktreeError.

        `index` and `work_tree` are paths; without them there is none. `frozen`: text that `freeze` returned, for calls
        whose answer depends on filters, line endings or excludes. `write_objects`: new objects go to the user's store
        (pin them at once) instead of the judge's. `env` adds to the environment (dates, names).
        """
        self._verify()
        environment = self._judge_environment(write_objects)
        # A file that does not exist is an empty index; /dev/null is a broken one (diff-tree reads the index).
        environment["GIT_INDEX_FILE"] = index if index is not None else str(Path(self.git_dir, "no-index"))
        if work_tree is not None:
            environment["GIT_WORK_TREE"] = work_tree
        if frozen is not None:
            environment |= Frozen.parse(frozen).environment(self.git_dir, self.facts.common_dir)
        if env is not None:
            environment |= env
        cwd = work_tree if work_tree is not None else self.git_dir
        return run(args, env=environment, cwd=cwd, stdin=stdin, timeout_s=timeout_s, max_bytes=max_bytes, ok=ok)

    def user_git(
        self,
        *args: str,
        stdin: bytes | None = None,
        ok: Collection[int] = (0,),
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_bytes: int = DEFAULT_MAX_BYTES,
        git_dir: str | None = None,
    ) -> GitResult:
        """Run plumbing on the user's git dir, or on an admin folder `git_dir` below it. Hooks and filters stay off."""
        return run(
            args,
            env=self._user_environment(git_dir or self.facts.common_dir),
            cwd=self.facts.common_dir,
            stdin=stdin,
            timeout_s=timeout_s,
            max_bytes=max_bytes,
            ok=ok,
        )

    def change_refs(self, commands: bytes) -> str | None:
        """Apply `update-ref -z --stdin` commands to the user's refs, all or none; what git said when it did not.

        As `user_git` would, in a kept process. Raises: WorktreeError when it is not known whether it did.
        """
        if not self._changer.fits(commands):
            result = self.user_git("update-ref", "-z", "--stdin", stdin=commands, ok=(0, 1, 128))
            return (result.said or "no message") if result.code != 0 else None
        try:
            self._changer.apply(commands)
        except RefusedError as error:
            return GitResult(128, b"", error.said).said
        return None

    def write_commit(self, text: bytes) -> str:
        """Write a commit with exactly these bytes durably into the user's object store; its id. Pin it at once.

        Raises: WorktreeError when it is none that git would write or its place is taken, OSError of the machine.
        """
        if WRITTEN_COMMIT.fullmatch(text) is None:
            raise WorktreeError("INTERNAL_ERROR", f"git would not write this commit: {text[:200]!r}", kept="all refs")
        oid = self._write("commit", text)
        self.commits.learn(oid, text)
        return oid

    def write_tree(self, text: bytes) -> str:
        """Write a tree with exactly these bytes, as `write_commit` does a commit; its id.

        Raises: TooLargeError when it is none that git would write, else as `write_commit`.
        """
        tree = parse_tree(text, 32 if self.facts.object_format == "sha256" else 20)
        oid = self._write("tree", text)
        self.trees.learn(oid, tree)
        return oid

    @contextlib.contextmanager
    def temporary_index(self) -> Iterator[str]:
        """A path for a private index that does not exist yet; removed afterwards with its lock."""
        try:
            folder = tempfile.mkdtemp(prefix="index-", dir=Path(self.git_dir, "tmp"))
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES):
                raise
            # To look at a state that cannot be written: as private, in the system's own folder for such files.
            folder = tempfile.mkdtemp(prefix="coordinate-agents-index-")
        try:
            yield str(Path(folder, "index"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def look_up(self, expression: str) -> ObjectName | None:
        """The object named by a full id or `<id>^{type}`, from the kept process; None when it does not exist."""
        return self._reader.look_up(expression)

    @property
    def user_objects(self) -> str:
        return self._objects

    @property
    def is_shallow(self) -> bool:
        return os.path.exists(f"{self.git_dir}/shallow")  # noqa: PTH110

    def exists(self, oid: str) -> bool:
        return self.look_up(oid) is not None

    def commit(self, oid: str) -> str | None:
        """The full id of the commit that this id names (tags peeled); None when it is none."""
        # Asked mostly of what an agent committed a moment ago: that stands in a file of its own.
        if is_loose_commit(self._objects, oid):
            return oid
        found = self.look_up(f"{oid}^{{commit}}")
        return found.oid if found is not None else None

    def tree_of(self, commit: str) -> str:
        """The tree of a commit, as it was read once. Raises: WorktreeError when there is no such commit."""
        known = self.commits.read(commit)
        if known is not None:
            return known.tree
        found = self.look_up(f"{commit}^{{tree}}")
        if found is None:
            raise WorktreeError("INTERNAL_ERROR", f"Commit {commit} does not exist in this repository.")
        return found.oid

    def is_ancestor(self, ancestor: str, commit: str) -> bool:
        """Whether both exist and `commit` contains `ancestor`, by objects alone."""
        return self.git("merge-base", "--is-ancestor", ancestor, commit, ok=(0, 1, 128)).code == 0

    def copy_shallow(self) -> None:
        """Take the user's shallow boundary as it is now; a later one is not believed."""
        _copy_shallow(self.facts.common_dir, Path(self.git_dir))
        self._reader.close()

    def _write(self, type_: str, text: bytes) -> str:
        try:
            return write_loose(self._objects, self.facts.object_format, type_, text)
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
            message = f"A {type_} could not be written into {self._objects}: {error.strerror}."
            raise WorktreeError("INTERNAL_ERROR", message, kept="all refs", next="git fsck") from error

    def _judge_environment(self, write_objects: bool) -> dict[str, str]:
        environment = dict(self._environment)
        environment["GIT_DIR"] = self.git_dir
        environment["GIT_COMMON_DIR"] = self.git_dir
        if write_objects:
            environment["GIT_OBJECT_DIRECTORY"] = self._objects
            environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = quote_path(str(Path(self.git_dir, "objects")))
        return environment

    def _user_environment(self, git_dir: str) -> dict[str, str]:
        environment = dict(self._environment)
        environment["GIT_DIR"] = git_dir
        environment["GIT_COMMON_DIR"] = self.facts.common_dir
        return environment | config_environment(USER_OVERRIDES)

    def _start_ref_changer(self) -> "subprocess.Popen[bytes]":
        place = self.facts.common_dir
        return start(["update-ref", "-z", "--stdin"], env=self._user_environment(place), cwd=place, with_errors=True)

    def _start_reader(self) -> "subprocess.Popen[bytes]":
        return start(["cat-file", "--batch-command"], env=self._judge_environment(False), cwd=self.git_dir)

    def _create(self) -> None:
        """Make the repository under another name and move it into place, so that nobody sees half of one."""
        state = Path(self.facts.state_dir)
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        if identity(str(state)) is None:
            raise WorktreeError("STATE_TAMPERED", f"The state folder {state} is a link.", kept="what it points at")
        draft = state / f"judge.{secrets.token_hex(8)}"
        for folder in ("objects/info", "objects/pack", "refs/heads", "info", "tmp"):
            (draft / folder).mkdir(mode=0o700, parents=True)
        for name, text in self._fixed_files().items():
            (draft / name).write_bytes(text)
        _copy_shallow(self.facts.common_dir, draft)
        crash_point("judge.drafted")
        try:
            draft.rename(self.git_dir)
            crash_point("judge.moved")
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            if not Path(self.git_dir, "HEAD").exists():
                raise

    def _fixed_files(self) -> dict[str, bytes]:
        object_format = self.facts.object_format
        config = CONFIG.format(version=1, object_format=object_format)
        alternates = "".join(f"{quote_path(path)}\n" for path in (self._objects, *_user_alternates(self._objects)))
        return {
            "HEAD": b"ref: refs/heads/none\n",
            "config": config.encode(),
            "objects/info/alternates": os.fsencode(alternates),
        }

    def _verify(self) -> None:
        """Write the fixed files again when they are not as written. Three stat calls when nothing changed."""
        names = ("HEAD", "config", "objects/info/alternates")
        seen = tuple(_fingerprint(f"{self.git_dir}/{name}") for name in names)
        if seen == self._seen:
            return
        with self._lock:
            for name, text in self._fixed_files().items():
                ensure_text(Path(self.git_dir, name), text)
            for name in ("config.worktree", "info/attributes", "info/exclude", "info/grafts", "commondir"):
                # Where nothing can be written, taking away what is not there is refused too; looking must work.
                if os.path.lexists(Path(self.git_dir, name)):
                    Path(self.git_dir, name).unlink(missing_ok=True)
            self._seen = tuple(_fingerprint(f"{self.git_dir}/{name}") for name in names)

    def _sweep(self) -> None:
        tmp = Path(self.git_dir, "tmp")
        tmp.mkdir(mode=0o700, exist_ok=True)
        drafts = Path(self.git_dir).parent.glob("judge.*")
        for entry in (*tmp.iterdir(), *drafts):
            with contextlib.suppress(OSError):
                if entry.lstat().st_mtime < time.time() - _STALE_S:
                    shutil.rmtree(entry, ignore_errors=True)


def quote_path(path: str) -> str:
    """A path as git reads it in lists of object folders and of files: C-quoted, so colons and newlines are safe."""
    escaped = (
        path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    )
    return f'"{escaped}"'


def _user_alternates(objects: str) -> list[str]:
    """The user's own alternates (a clone made with --shared) as absolute paths; git refuses relative nested ones."""
    try:
        lines = Path(objects, "info", "alternates").read_bytes().splitlines()
    except OSError:
        return []
    paths = [os.fsdecode(line) for line in lines if line and not line.startswith((b"#", b'"'))]
    return [os.path.realpath(Path(objects, path)) for path in paths if not Path(path).is_absolute()]


def _copy_shallow(common_dir: str, judge: Path) -> None:
    target = judge / "shallow"
    boundary = read_regular(Path(common_dir, "shallow"))
    if boundary is None:
        target.unlink(missing_ok=True)
    else:
        ensure_text(target, boundary)


def _fingerprint(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns)
