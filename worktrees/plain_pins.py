"""Makes a new pin as a file, without a git process: written whole beside, then linked to its name, which must be free.

Only a pin can be made so: nobody but the Runtime makes names there, it has no reflog, and it is never moved. A link
fails where there is something already, so no lock is held that a kill could leave behind. What is not as simple as that
(settings that give refs logs or permissions of their own, a name in the way, folders that vanish under a `git gc`) is
left to git.
"""

import contextlib
import functools
import os
import re
import secrets
from typing import Final

from coordinate_agents.worktrees.files import read_regular
from coordinate_agents.worktrees.loose import is_loose_commit
from coordinate_agents.worktrees.model import PIN_PREFIX, CommitId, RepositoryFacts
from coordinate_agents.worktrees.reffiles import packed_below

# Included files may say anything.
_ODD: Final = re.compile(rb"\[\s*include|sharedrepository|logallrefupdates\s*=\s*[\"']?always", re.I)


def create_pin(facts: RepositoryFacts, drafts: str, name: str, commit: CommitId) -> bool:
    """Make the pin; False: nothing was changed, and git must be asked. `drafts`: a private folder."""
    if not name.startswith(f"{PIN_PREFIX}/") or not _is_plain(read_regular(f"{facts.common_dir}/config")):
        return False
    # As git, of nothing that is not there; where else than in a file of its own it is, git knows.
    if not is_loose_commit(f"{facts.common_dir}/objects", commit):
        return False
    draft, path = f"{drafts}/pin-{secrets.token_hex(8)}", f"{facts.common_dir}/{name}"
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            os.write(fd, f"{commit}\n".encode())
        finally:
            os.close(fd)
        return _link(facts, draft, path, name, commit)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.unlink(draft)  # noqa: PTH108


def _link(facts: RepositoryFacts, draft: str, path: str, name: str, commit: CommitId) -> bool:
    if _is_packed(facts, name):
        return False
    try:
        os.link(draft, path)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        os.link(draft, path)
    # What is packed now is this one, or one that somebody made between the look and the link.
    if _is_packed(facts, name) and packed_below(facts.common_dir, f"{PIN_PREFIX}/").get(name) != commit:
        os.unlink(path)  # noqa: PTH108
        return False
    return True


def _is_packed(facts: RepositoryFacts, name: str) -> bool:
    """Whether the name, one above it or one below it is among the packed refs."""
    packed = packed_below(facts.common_dir, f"{PIN_PREFIX}/")
    return any(each == name or each.startswith(f"{name}/") or name.startswith(f"{each}/") for each in packed)


@functools.lru_cache(maxsize=4)
def _is_plain(config: bytes | None) -> bool:
    return config is not None and _ODD.search(config) is None
