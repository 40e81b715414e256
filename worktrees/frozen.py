"""The user's filters, line endings and excludes as of graph-create: the only user settings that the judge uses.

`freeze` reads them once, with the user's whole configuration, into JSON that the caller records; `Frozen` turns that
text into the environment of a judge call. What an agent changes later in the shared configuration is never read.
"""

import functools
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from coordinate_agents.worktrees.errors import WorktreeError
from coordinate_agents.worktrees.files import ensure_text, read_regular
from coordinate_agents.worktrees.git import config_environment, inherited_environment, run
from coordinate_agents.worktrees.model import RepositoryFacts
from coordinate_agents.worktrees.values import value_class

MAX_RULES_BYTES: Final = 1 << 20

Pairs = tuple[tuple[str, str], ...]

_FILTER: Final = re.compile(r"filter\..+\.(?:clean|smudge|process|required)")
_PLAIN: Final = frozenset(
    ["core.autocrlf", "core.eol", "core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode"]
)
_TRANSPORT: Final = re.compile(
    r"remote\..+\.(?:url|promisor|partialclonefilter|proxy)|url\..+\.insteadof|credential\..+|core\.sshcommand|ssh\.variant"
    r"|http\.(?:.+\.)?(?:proxy|sslcainfo|sslcapath|sslcert|sslkey|sslverify)|extensions\.partialclone"
)
_LFS: Final = re.compile(r"lfs\..+|remote\..+\.(?:url|lfsurl)")
_FALSE: Final = frozenset(["false", "no", "off", "0"])
_TRUE: Final = frozenset(["true", "yes", "on", "1"])
# What each setting must be for a file's name, mode and kind on the disk to be what git takes them for.
_AS_ON_DISK: Final[Mapping[str, frozenset[str]]] = {
    "core.ignorecase": _FALSE,
    "core.precomposeunicode": _FALSE,
    "core.symlinks": _TRUE,
    "core.filemode": _TRUE,
}
_PASSWORD: Final = re.compile(r"(://[^/@:]*):[^/@]*@")

# Where the user's configuration may be named by a variable. Not repository-local: git keeps these for every command.
_CONFIG_VARIABLES: Final = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


@value_class
class Frozen:
    """What was recorded. `settings` apply to every judging call, `transport` only to completing a partial clone.

    `excludes` are the global excludes and `info/exclude`, in git's order; `attributes` likewise. `shallow` is None for
    a complete clone.
    """

    settings: Pairs = ()
    transport: Pairs = ()
    excludes: str = ""
    attributes: str = ""
    shallow: str | None = None

    @staticmethod
    def parse(text: str) -> "Frozen":
        """The value that `to_json` wrote; empty text means no settings. Raises: STATE_TAMPERED."""
        return _parse(text)

    def to_json(self) -> str:
        values = {name: getattr(self, name) for name in ("settings", "transport", "excludes", "attributes", "shallow")}
        return json.dumps({"version": 1, **values}, sort_keys=True, separators=(",", ":"))

    def filters(self) -> tuple[str, ...]:
        """Names of the recorded filters, sorted."""
        return tuple(
            sorted({key.split(".", 1)[1].rsplit(".", 1)[0] for key, _ in self.settings if _FILTER.fullmatch(key)})
        )

    def is_as_on_disk(self) -> bool:
        """Whether git takes names, modes and kinds of files for what they are on the disk."""
        return all(key not in _AS_ON_DISK or value.lower() in _AS_ON_DISK[key] for key, value in self.settings)

    def environment(self, judge_dir: str, common_dir: str) -> Mapping[str, str]:
        """Variables for one judge call; excludes and attributes stand in private files of the judge."""
        folder = Path(judge_dir, "frozen", _digest(self))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings = list(self.settings)
        for key, name, rules in (
            ("core.excludesFile", "excludes", self.excludes),
            ("core.attributesFile", "attributes", self.attributes),
        ):
            if rules:
                ensure_text(folder / name, os.fsencode(rules))
                settings.append((key, str(folder / name)))
        if "lfs" in self.filters() and not any(key == "lfs.storage" for key, _ in settings):
            # git-lfs keeps its objects beside the git dir it is called for, and that is the judge.
            settings.append(("lfs.storage", str(Path(common_dir, "lfs"))))
        env = config_environment(settings)
        if self.shallow is not None:
            ensure_text(folder / "shallow", os.fsencode(self.shallow))
            env["GIT_SHALLOW_FILE"] = str(folder / "shallow")
        return env


def freeze(facts: RepositoryFacts) -> Frozen:
    """Read the user's settings now. One git call. Raises: REPOSITORY_UNSUPPORTED when rules are too large."""
    config = user_config(facts)
    has_lfs = any(key.startswith("filter.lfs.") for key, _ in config)
    settings = [pair for pair in config if _FILTER.fullmatch(pair[0]) or pair[0] in _PLAIN]
    if has_lfs:
        settings += [(key, _without_password(value)) for key, value in config if _LFS.fullmatch(key)]
    transport: list[tuple[str, str]] = []
    if facts.is_partial:
        transport = [(key, _without_password(value)) for key, value in config if _TRANSPORT.fullmatch(key)]
    last = dict(config)
    shallow = read_regular(Path(facts.common_dir, "shallow"))
    return Frozen(
        settings=tuple(settings),
        transport=tuple(transport),
        excludes=_rules(facts, last.get("core.excludesfile"), "ignore", "exclude"),
        attributes=_rules(facts, last.get("core.attributesfile"), "attributes", "attributes"),
        shallow=None if shallow is None else os.fsdecode(shallow),
    )


def user_environment() -> dict[str, str]:
    """The environment for reading the user's own configuration: never a repository-local variable."""
    env = inherited_environment()
    env |= {name: os.environ[name] for name in _CONFIG_VARIABLES if name in os.environ}
    env["GIT_OPTIONAL_LOCKS"] = "0"
    env["GIT_TERMINAL_PROMPT"] = "0"
    return env


def user_config(facts: RepositoryFacts) -> Pairs:
    """Every setting that applies in the root, lowest precedence first; names as git prints them, in lower case."""
    env = user_environment() | {"GIT_DIR": facts.git_dir, "GIT_COMMON_DIR": facts.common_dir}
    result = run(["config", "--list", "-z"], env=env, cwd=facts.root, timeout_s=20, ok=(0, 1))
    pairs = (field.partition("\n") for field in result.fields())
    # A name without "=" means true.
    return tuple((key, value if separator else "true") for key, separator, value in pairs)


def _rules(facts: RepositoryFacts, configured: str | None, default: str, private: str) -> str:
    """The user's global rules, then those of the repository's `info` folder: later lines win in both files."""
    parts: Iterable[Path] = (_global_rules(facts, configured, default), Path(facts.common_dir, "info", private))
    texts = [_read_rules(path) for path in parts]
    return "\n".join(text for text in texts if text)


def _read_rules(path: Path) -> str:
    try:
        # The user may well keep these behind a link of his own.
        text = path.resolve().read_bytes() if path.is_file() else b""
    except OSError:
        return ""
    if len(text) > MAX_RULES_BYTES:
        raise WorktreeError("REPOSITORY_UNSUPPORTED", f"{path} is larger than {MAX_RULES_BYTES} bytes.")
    return os.fsdecode(text)


def _global_rules(facts: RepositoryFacts, configured: str | None, default: str) -> Path:
    if configured is not None:
        return Path(facts.root, Path(configured).expanduser()) if configured else Path(os.devnull)
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(home, "git", default)


def _without_password(value: str) -> str:
    """URLs lose their password: settings are recorded, secrets never."""
    return _PASSWORD.sub(r"\1@", value)


@functools.lru_cache(maxsize=64)
def _parse(text: str) -> Frozen:
    if not text:
        return Frozen()
    try:
        raw = json.loads(text)
        if raw["version"] != 1:
            raise ValueError("version")
        return Frozen(
            settings=_pairs(raw["settings"]),
            transport=_pairs(raw["transport"]),
            excludes=str(raw["excludes"]),
            attributes=str(raw["attributes"]),
            shallow=None if raw["shallow"] is None else str(raw["shallow"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise WorktreeError(
            "STATE_TAMPERED",
            "The recorded git settings of this graph cannot be read.",
            kept="every branch and worktree",
        ) from error


def _pairs(raw: Iterable[Iterable[str]]) -> Pairs:
    return tuple((str(key), str(value)) for key, value in raw)


@functools.lru_cache(maxsize=64)
def _digest(frozen: Frozen) -> str:
    return hashlib.sha256(frozen.to_json().encode()).hexdigest()[:32]
