"""Digests of what in the shared git state can make somebody's git run a program, or lie to it.

Agents share the user's configuration, hooks and object folder; a change there acts in the user's shell and in every
sibling. `shared_state` is taken before and after; whoever keeps both compares them. Nothing here is executed, and
values never leave as text: only digests do.
"""

import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.git import inherited_environment, run
from coordinate_agents.worktrees.model import RepositoryFacts, SharedState

_MAX_FILE_BYTES: Final = 16 << 20
_MAX_SUBMODULES: Final = 1000

# Names as git prints them: section and last part in lower case, the middle as written.
_KEYS: Final = re.compile(
    r"core\.(?:fsmonitor|hookspath|sshcommand|editor|pager|askpass|gitproxy|attributesfile|excludesfile|alternaterefscommand"
    r"|ignorestat|checkstat|logallrefupdates)"
    r"|core\.(?:worktree|bare|repositoryformatversion)|extensions\..+"
    r"|sequence\.editor|pager\..+|alias\..+|include\..+|includeif\..+|hook\..+|init\.templatedir"
    r"|filter\..+|diff\.external|diff\..+\.(?:command|textconv|cachetextconv)|merge\..+\.driver"
    r"|(?:merge|diff)tool\..+|interactive\.difffilter|guitool\..+|trailer\..+|browser\..+|man\..+|instaweb\..+|tar\..+"
    r"|credential\..+|gpg\..+|http\..+|url\..+|protocol\..+|imap\..+|sendemail\..+|web\.browser"
    r"|remote\..+\.(?:uploadpack|receivepack|vcs|promisor|partialclonefilter)|uploadpack\..+|receive\..+"
    r"|submodule\..+\.update|gc\.recentobjectshook|lfs\.(?:customtransfer|extension)\..+|lfs\.standalonetransferagent",
    re.DOTALL,
)
# An address with a transport helper runs a program; so does one that would be read as an option.
_ADDRESS: Final = re.compile(r"(?:remote|submodule)\..+\.(?:url|pushurl)", re.DOTALL)
_RUNS_PROGRAM: Final = re.compile(r"[A-Za-z0-9_-]+::|-")
# Every submodule's git dir has these from its making.
_OF_SUBMODULES: Final = frozenset(
    ["core.worktree", "core.bare", "core.logallrefupdates", "core.repositoryformatversion", "extensions.objectformat"]
)
_FILES: Final = ("info/attributes", "info/grafts", "objects/info/alternates", "shallow")


def shared_state(facts: RepositoryFacts) -> SharedState:
    """One entry per fact, with a digest of its value. A git call only for a configuration text not seen before."""
    common = facts.common_dir
    found: dict[str, str] = {}
    inherited = _of_config(f"{common}/config.worktree")
    for label, path in _config_files(common):
        # `git worktree add` copies the root's own settings into each new worktree: a copy is no change.
        is_copy = label.startswith("worktrees/")
        for key, value in _of_config(path).items():
            if not (is_copy and inherited.get(key) == value):
                found[f"{label}:{key}"] = value
    found |= _hooks(Path(common, "hooks"), "hook")
    for name in _FILES:
        path = f"{common}/{name}"
        if os.path.lexists(path):
            found[name] = _digest_file(Path(path))
    found |= _replacements(common)
    for module in _submodules(common):
        found |= _of_submodule(module, f"modules/{module.relative_to(Path(common, 'modules'))}")
    return found


def _config_files(common: str) -> Iterator[tuple[str, str]]:
    yield "config", f"{common}/config"
    yield "config.worktree", f"{common}/config.worktree"
    top = f"{common}/worktrees"
    try:
        with os.scandir(top) as listed:
            names = sorted(entry.name for entry in listed)
    except OSError:
        return
    # Looked through twice a subtask with a folder for each worktree: no path objects.
    for name in names:
        path = f"{top}/{name}/config.worktree"
        if os.path.lexists(path):
            yield f"worktrees/{name}/config.worktree", path


def _of_config(path: str) -> Mapping[str, str]:
    text = read_regular(path, _MAX_FILE_BYTES)
    if text is not None:
        return _relevant(text)
    return {"unreadable": _strange(Path(path))} if os.path.lexists(path) else {}


@functools.lru_cache(maxsize=256)
def _relevant(text: bytes) -> Mapping[str, str]:
    """Digests of the values that can run a program or lie, by key. Raises: WorktreeError for a git that was killed."""
    for _ in range(2):  # a git that fails once would make a change of what did not change
        result = run(
            ["config", "--file", "-", "--list", "-z", "--no-includes"],
            env=inherited_environment(),
            stdin=text,
            timeout_s=20,
            ok=range(256),
        )
        if result.code == 0:
            break
    else:
        # git cannot read it, so nobody's git can: only that it changed can be told.
        return {"unreadable": _digest(text)}
    values: dict[str, list[str]] = {}
    for field in result.fields():
        key, _, value = field.partition("\n")
        is_address = _ADDRESS.fullmatch(key) is not None and _RUNS_PROGRAM.match(value) is not None
        if is_address or _KEYS.fullmatch(key):
            values.setdefault(key, []).append(value)
    return {key: _digest("\0".join(several)) for key, several in values.items()}


def _hooks(folder: Path, label: str) -> dict[str, str]:
    """Everything in a hooks folder that git would run; its samples and files without execute permission are not."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except NotADirectoryError:
        return {label: _strange(folder)}
    except OSError:
        return {}
    found = {f"{label}:folder": _strange(folder)} if folder.is_symlink() else {}
    for entry in entries:
        if not entry.name.endswith(".sample") and os.access(entry.path, os.X_OK):
            found[f"{label}:{entry.name}"] = _digest_file(Path(entry.path))
    return found


def _replacements(common: str) -> dict[str, str]:
    """Replace refs, loose or packed alike: the user's gc may pack them."""
    found: dict[str, str] = {}
    packed = read_regular(f"{common}/packed-refs", 512 << 20) or b""
    if b" refs/replace/" in packed:
        pairs = re.findall(rb"^([0-9a-f]+) (refs/replace/[^\n]+)$", packed, re.M)
        found = {os.fsdecode(name): oid.decode() for oid, name in pairs}
    for folder, _, names in os.walk(f"{common}/refs/replace"):
        for name in names:
            path = Path(folder, name)
            found[path.relative_to(common).as_posix()] = os.fsdecode((read_regular(path, 4096) or b"").strip())
    return {name: _digest(oid) for name, oid in found.items()}


def _submodules(common: str) -> list[Path]:
    """Git dirs of the user's submodules, nested ones included."""
    found: list[Path] = []
    for folder, folders, names in os.walk(f"{common}/modules"):
        if "HEAD" in names and "objects" in folders:
            found.append(Path(folder))
            folders[:] = [name for name in folders if name == "modules"]
        if len(found) >= _MAX_SUBMODULES:
            break
    return sorted(found)


def _of_submodule(module: Path, label: str) -> dict[str, str]:
    values = _relevant(read_regular(module / "config", _MAX_FILE_BYTES) or b"")
    found = {f"{label}/config:{key}": value for key, value in values.items() if key not in _OF_SUBMODULES}
    return found | _hooks(module / "hooks", f"{label}/hook")


def _digest_file(path: Path) -> str:
    """Digest of what the path holds; through a link that of link and target, since either may change."""
    text = read_regular(path, _MAX_FILE_BYTES)
    if text is not None:
        return _digest(text)
    if path.is_symlink():
        behind = read_regular(Path(os.path.realpath(path)), _MAX_FILE_BYTES) or b""
        return _digest(os.fsencode(path.readlink()) + b"\0" + behind)
    return _strange(path)


def _strange(path: Path) -> str:
    """A digest for what is no readable regular file: kind, size and time stand for the content."""
    found = path.lstat()
    target = str(path.readlink()) if stat.S_ISLNK(found.st_mode) else ""
    return _digest(f"{stat.S_IFMT(found.st_mode)} {found.st_size} {found.st_mtime_ns} {target}")


def _digest(value: str | bytes) -> str:
    return hashlib.sha256(value if isinstance(value, bytes) else os.fsencode(value)).hexdigest()[:32]
