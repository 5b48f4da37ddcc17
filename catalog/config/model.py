"""The configuration as a value: servers as written, effect table, learning mode, models.

Values keep their placeholders until `expand`, so that a secret is read from the environment only
when its server starts, and a missing one stops that server alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Literal

from catalog.canonical import JsonValue
from catalog.config.interpolation import Unfilled, interpolate
from catalog.effects import EffectTable
from catalog.errors import ConfigError

__all__ = ["IDLE_SECONDS", "OWN_KEYS", "Config", "Learning", "ServerSpec", "Transport", "expand"]

Transport = Literal["stdio", "http", "sse"]
Learning = Literal["auto", "propose", "off"]
OWN_KEYS = ("effects", "reset", "allow", "learning", "models", "idle_seconds")
"""What the `skillbank` key may hold."""
IDLE_SECONDS = 900.0
"""After how long without a call a server that holds nothing is ended, where nothing is configured."""


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """One configured tool server, its values unexpanded.

    `command` is set for stdio, `url` for http and sse. `env` and `headers` may hold secrets and
    are left out of the representation.
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    """Working folder, None: the one skillbank runs in."""
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    transport: Transport = "stdio"
    timeout_seconds: float | None = None
    """Bound of one call, None: the default of the connections."""
    idle_seconds: float | None = None
    """After how long without a call it is ended whatever it holds, 0: never; None: as for all servers."""
    parallel_calls: int | None = None
    """Calls under way at once, None: the default of the connections."""
    disabled: bool = False
    workspace: str | None = None
    """What `${workspaceFolder}` stands for."""
    env_file: str | None = None
    """File of variables that an editor would read; unsupported, refused on expansion."""

    @property
    def launch(self) -> str:
        """What starting this server does, placeholders as written: a command line or an address."""
        return self.url or " ".join([self.command or "", *self.args])

    @property
    def is_ourselves(self) -> bool:
        """Whether this server would start skillbank again, which would never end."""
        words = [PurePath(word.replace("\\", "/")).name for word in (self.command or "", *self.args)]
        ours = [n for n, word in enumerate(words) if _program(word) == "skillbank"]
        return bool(ours) and "serve" in words[ours[0] :]


def _program(word: str) -> str:
    for mark in ("[", "==", ">=", "@", ".exe"):
        word = word.split(mark)[0]
    return word


@dataclass(frozen=True)
class Config:
    """One configuration file, read."""

    servers: Mapping[str, ServerSpec]
    effects: EffectTable = field(default_factory=EffectTable)
    learning: Learning = "auto"
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    idle_seconds: float | None = IDLE_SECONDS
    """After how long without a call a server that holds nothing is ended; 0 or None: never."""
    path: Path | None = None
    """None when the configuration came from no file."""
    document: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The file as it was read, unknown keys included: what a rewrite starts from."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What is allowed but cannot be meant, for `doctor`."""
        named = {
            "effects": self.effects.effects,
            "reset": self.effects.reset,
            "allow": self.effects.allow,
        }
        strangers = [
            f"skillbank.{key} names server {server!r}, which is not configured"
            for key, table in named.items()
            for server in table
            if server not in self.servers
        ]
        return (
            *self._unread,
            *strangers,
            *(_recursion(s.name) for s in self.servers.values() if s.is_ourselves),
        )

    @property
    def _unread(self) -> tuple[str, ...]:
        own = self.document.get("skillbank")
        unknown = [key for key in own if key not in OWN_KEYS] if isinstance(own, dict) else []
        known = ", ".join(OWN_KEYS)
        return tuple(
            f"skillbank.{key} is no key of ours and is not read; there are: {known}" for key in unknown
        )


def _recursion(server: str) -> str:
    return f"server {server!r} starts skillbank itself, which would start itself again"


def expand(spec: ServerSpec, environment: Mapping[str, str]) -> ServerSpec:
    """Return the server with every placeholder filled, ready to start.

    Args:
        spec: as configured.
        environment: the variables placeholders may name.

    Raises:
        ConfigError: a placeholder cannot be filled (names server, key and variable), the entry
            needs something only an editor does, or it would start skillbank itself.
    """

    def filled(text: str, *key: str) -> str:
        place = ".".join((spec.name, *key))
        try:
            return interpolate(text, environment, spec.workspace)
        except Unfilled as error:
            raise ConfigError(f"server {spec.name!r}: {error}", key=place) from error

    if spec.is_ourselves:
        raise ConfigError(_recursion(spec.name), key=f"{spec.name}.command")
    if spec.env_file is not None:
        raise ConfigError(
            f"server {spec.name!r}: an environment file is not read: put the variables under 'env'",
            key=f"{spec.name}.envFile",
        )
    return replace(
        spec,
        command=None if spec.command is None else filled(spec.command, "command"),
        args=tuple(filled(arg, "args", str(n)) for n, arg in enumerate(spec.args)),
        env={name: filled(value, "env", name) for name, value in spec.env.items()},
        cwd=None if spec.cwd is None else filled(spec.cwd, "cwd"),
        url=None if spec.url is None else filled(spec.url, "url"),
        headers={name: filled(value, "headers", name) for name, value in spec.headers.items()},
    )
