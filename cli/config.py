"""Reads the two configuration files and says where each value comes from; asks the trust store about the project's.

The project's file is read once: the bytes that were hashed are the bytes that are parsed. Until that hash is trusted
for that root, what it says about programs, environment, paths and permissions is left out, and verbs that would act on
the configuration call `require_trust` first. The user's own file is always trusted. Starts nothing, resolves no
program.
"""

import hashlib
import os
import shlex
import stat
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from coordinate_agents.cli import trust_store
from coordinate_agents.graph import config_document
from coordinate_agents.graph.config import Config, merge
from coordinate_agents.graph.errors import GraphError
from coordinate_agents.worktrees.values import value_class

PROJECT_FILE: Final = ".coordinate-agents.yaml"
USER_FILE: Final = "coordinate-agents/config.yaml"

# Keys that an error names; the rest is counted.
_SHOWN_KEYS: Final = 8


@value_class
class LoadedConfig:
    """The configuration in force for `root`.

    `sources` maps a key such as `agents.backend.command` to the file that set it. `project_digest` is the hash of the
    project's file, None when there is none. `inert` lists its keys that wait for trust; empty once it is trusted.
    `asked` is what the project's file would set if it were trusted.
    """

    root: Path
    config: Config
    sources: Mapping[str, str]
    project_path: Path
    user_path: Path
    project_digest: str | None = None
    inert: tuple[str, ...] = ()
    asked: Config = field(default_factory=Config)

    @property
    def is_trusted(self) -> bool:
        return not self.inert


def load(root: Path) -> LoadedConfig:
    """The configuration of the repository at `root` and of the user, merged per field.

    Raises: GraphError(INVALID_AGENT_CONFIG) with all problems of a file, or when one cannot be read.
    """
    top = Path(os.path.realpath(root))
    project_path, user_path = top / PROJECT_FILE, user_config_path()
    project_data, user_data = _read(project_path), _read(user_path)
    user = Config() if user_data is None else config_document.parse(user_data, name=str(user_path), source="user")
    project, digest = Config(), None
    if project_data is not None:
        project = config_document.parse(project_data, name=PROJECT_FILE, source="project")
        digest = hashlib.sha256(project_data).hexdigest()
    inert = config_document.inert_keys(project)
    if digest is not None and inert and trust_store.is_trusted(top, digest):
        inert = ()
    active = _in_place(config_document.without(project) if inert else project, top)
    config = merge(active, _in_place(user, top))
    files = {"project": str(project_path), "user": str(user_path)}
    return LoadedConfig(
        top, config, _sources(config, files), project_path, user_path, digest, inert, asked=_in_place(project, top)
    )


def require_trust(loaded: LoadedConfig) -> None:
    """Raise CONFIG_UNTRUSTED when the project's file holds keys that wait for the user's trust."""
    if loaded.is_trusted:
        return
    more = f" and {len(loaded.inert) - _SHOWN_KEYS} more" if len(loaded.inert) > _SHOWN_KEYS else ""
    raise GraphError(
        "CONFIG_UNTRUSTED",
        f"{PROJECT_FILE} sets {', '.join(loaded.inert[:_SHOWN_KEYS])}{more}, and this version of the file is not "
        "trusted. A repository's configuration runs nothing until its user has looked at it.",
        kept="Nothing was started.",
        next=f"coordinate-agents setup-trust --root {shlex.quote(str(loaded.root))}",
        stage="configuration",
        facts={"file": str(loaded.project_path), "digest": loaded.project_digest},
    )


def trust(root: Path, *, digest: str | None = None) -> LoadedConfig:
    """Record that the user trusts the project's file as it is, and load again.

    `digest` is what the user was shown: a file that changed since is not trusted. Raises: CONFIG_UNTRUSTED,
    INVALID_AGENT_CONFIG (also when there is no file).
    """
    loaded = load(root)
    if loaded.project_digest is None:
        raise GraphError(
            "INVALID_AGENT_CONFIG",
            f"There is no {PROJECT_FILE} in {loaded.root}, so there is nothing to trust.",
            next="coordinate-agents setup-configure",
        )
    if digest is not None and digest != loaded.project_digest:
        raise GraphError(
            "CONFIG_UNTRUSTED",
            f"{PROJECT_FILE} changed after it was shown, so it was not trusted.",
            kept="The trust store is unchanged.",
            next=f"coordinate-agents setup-trust --root {shlex.quote(str(loaded.root))}",
        )
    trust_store.record(loaded.root, loaded.project_digest)
    return load(root)


def trust_lines(loaded: LoadedConfig) -> tuple[str, ...]:
    """What the project's file asks for, one `key: value` line each, to be shown before trust. Values of `env` are not
    shown, only their names."""
    lines = []
    for key in config_document.inert_keys(loaded.asked):
        parts = key.split(".")
        if parts[0] == "agents":
            agent = loaded.asked.agent(".".join(parts[1:-1]))
            value = getattr(agent, config_document.field_of(parts[-1]))
            shown = ", ".join(value) if parts[-1] == "env" else _shown(value)
        else:
            shown = _shown(getattr(loaded.asked, config_document.field_of(key)))
        lines.append(f"{key}: {shown}")
    return tuple(lines)


def user_config_path() -> Path:
    """`$XDG_CONFIG_HOME/coordinate-agents/config.yaml`; a relative XDG_CONFIG_HOME is ignored, as its standard says."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else Path("~/.config").expanduser()) / USER_FILE


def _read(path: Path) -> bytes | None:
    """The bytes of the file, None when there is none. At most one byte more than a configuration may have."""
    # O_NONBLOCK: a named pipe of that name must not hold the program up.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _unreadable(path, "it is not a regular file")
        with os.fdopen(descriptor, "rb") as file:
            return file.read(config_document.MAX_CONFIG_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def _unreadable(path: Path, reason: str) -> GraphError:
    return GraphError(
        "INVALID_AGENT_CONFIG",
        f"The configuration {path} cannot be read: {reason}.",
        kept="Nothing was started or changed.",
        facts={"file": str(path)},
    )


def _in_place(config: Config, root: Path) -> Config:
    """Paths made absolute: relative ones against the root, `~` against the user's home. Names on PATH stay names."""
    agents = tuple(replace(agent, command=_program(agent.command, root)) for agent in config.agents)
    return replace(
        config,
        agents=agents,
        worktree_root=_path(config.worktree_root, root) if config.worktree_root else None,
        state_root=_path(config.state_root, root) if config.state_root else None,
    )


def _program(command: str | None, root: Path) -> str | None:
    is_path = command is not None and ("/" in command or (os.name == "nt" and "\\" in command))
    return _path(command, root) if command is not None and is_path else command


def _path(text: str, root: Path) -> str:
    # Not resolved: links are followed where the path is used, and a message shows what was written.
    return os.path.normpath(root / Path(text).expanduser())


def _sources(config: Config, files: Mapping[str, str]) -> dict[str, str]:
    found = {config_document.spell(name): files[source] for name, source in config.sources.items()}
    for agent in config.agents:
        for name, source in agent.sources.items():
            found[f"agents.{agent.name}.{config_document.spell(name)}"] = files[source]
    return dict(sorted(found.items()))


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_shown(each) for each in value) + "]"
    run = getattr(value, "run", None)
    return shlex.join(run) if run is not None else str(value)
