"""The configuration as a value: servers as written, effect table, learning mode, models.

Values keep their placeholders until `expand`, so that a secret is read from the environment only
when its server starts, and a missing one stops that server alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Literal

from catalog.canonical import JsonValue
from catalog.config.curation import CurationSpec
from catalog.config.env_file import read_env_file
from catalog.config.inputs import InputSpec
from catalog.config.interpolation import Fillers, Unfilled, inputs_named, interpolate
from catalog.config.models import ModelSpec
from catalog.effects import EffectTable, Reset
from catalog.errors import ConfigError
from catalog.labels import LabelTable
from catalog.secret_store import SecretStore

__all__ = [
    "IDLE_SECONDS",
    "OWN_KEYS",
    "Config",
    "Forwarded",
    "Learning",
    "OAuthSpec",
    "ResetCheck",
    "ServerSpec",
    "Transport",
    "expand",
]

Transport = Literal["stdio", "http", "sse"]
Learning = Literal["auto", "propose", "off"]
Forwarded = Literal["elicitation", "sampling", "roots", "log"]
"""What a tool server may be trusted to ask or tell the client behind a call."""
STRICTEST: tuple[Learning, ...] = ("off", "propose", "auto")
"""Learning modes, the one that lets least happen first."""
OWN_KEYS = (
    "effects",
    "reset",
    "reset_checks",
    "allow",
    "labels",
    "flows",
    "learning",
    "models",
    "principals",
    "idle_seconds",
    "curation",
    "forward",
    "publish",
)
"""What the `skillbank` key may hold."""
IDLE_SECONDS = 900.0
"""After how long without a call a server that holds nothing is ended, where nothing is configured."""


@dataclass(frozen=True, slots=True)
class OAuthSpec:
    """What is said of logging in to a server; nothing has to be."""

    client_id: str | None = None
    """Of a client registered by hand, None: it is registered when someone logs in."""
    client_secret: str | None = field(default=None, repr=False)
    client_metadata_url: str | None = None
    """Address of a client metadata document that is used as client id where the server takes one."""
    callback_port: int | None = None
    """Port of the loopback address that the browser is sent back to, None: a free one."""


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
    """File of variables that is read when the server starts; `env` wins over it."""
    oauth: OAuthSpec = OAuthSpec()
    inputs: Mapping[str, InputSpec] = field(default_factory=dict[str, InputSpec])
    """By id: those its values may name."""
    secrets: SecretStore | None = field(default=None, repr=False, compare=False)
    """Where answers to inputs and tokens are kept, None: nowhere."""

    @property
    def launch(self) -> str:
        """What starting this server does, placeholders as written: a command line or an address."""
        return self.url or " ".join([self.command or "", *self.args])

    @property
    def inputs_named(self) -> frozenset[str]:
        """Ids of the inputs that its values name."""
        texts = (
            self.command,
            self.cwd,
            self.url,
            self.env_file,
            self.oauth.client_id,
            self.oauth.client_secret,
        )
        held = (*self.args, *self.env.values(), *self.headers.values(), *(text for text in texts if text))
        return frozenset(name for text in held for name in inputs_named(text))

    @property
    def has_authorization(self) -> bool:
        """Whether its headers say who calls, so that nobody has to log in."""
        return any(name.lower() == "authorization" for name in self.headers)

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


@dataclass(frozen=True, slots=True)
class ResetCheck:
    """That a reset mode of a server was tried, and what came of it."""

    mode: Reset
    verdict: Literal["holds", "refuted", "undecided"]
    on: str
    """Date, as YYYY-MM-DD."""
    why: str

    @property
    def told(self) -> str:
        """The trial in a sentence."""
        said = {"holds": "holds", "refuted": "does not hold", "undecided": "could not be decided"}
        return f"{self.mode.value} {said[self.verdict]}, tried on {self.on}: {self.why}"


@dataclass(frozen=True)
class Config:
    """One configuration file, read."""

    servers: Mapping[str, ServerSpec]
    effects: EffectTable = field(default_factory=EffectTable)
    labels: LabelTable = field(default_factory=LabelTable)
    """What tools do with information and which flows are granted, as the operator says."""
    learning: Learning = "auto"
    """Mode of the bank: of every server that has none of its own."""
    learning_by_server: Mapping[str, Learning] = field(default_factory=dict[str, Learning])
    models: Mapping[str, ModelSpec] = field(default_factory=dict[str, ModelSpec])
    """By role, and `default`; empty: no model."""
    idle_seconds: float | None = IDLE_SECONDS
    """After how long without a call a server that holds nothing is ended; 0 or None: never."""
    curation: CurationSpec = field(default_factory=CurationSpec)
    """How skills in use are watched, and what is kept."""
    inputs: Mapping[str, InputSpec] = field(default_factory=dict[str, InputSpec])
    """By id: what a person is asked for."""
    reset_checks: Mapping[str, ResetCheck] = field(default_factory=dict[str, ResetCheck])
    """By server: the last trial of its reset mode."""
    forward: Mapping[str, frozenset[Forwarded]] = field(default_factory=dict[str, frozenset[Forwarded]])
    """By server: what it may ask or tell the client behind a call; nothing where it is not named."""
    publish: int | None = None
    """Most skills that clients see as tools, None: the default."""
    principals: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By subject, or `*`: patterns of the servers that a principal over HTTP may use."""
    path: Path | None = None
    """None when the configuration came from no file."""
    document: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The file as it was read, unknown keys included: what a rewrite starts from."""

    def keeping(self, secrets: SecretStore) -> Config:
        """Return the configuration with its secrets kept there."""
        servers = {name: replace(spec, secrets=secrets) for name, spec in self.servers.items()}
        return replace(self, servers=servers)

    def learning_of(self, servers: Iterable[str]) -> Learning:
        """Return the mode for what is learned over some servers: the strictest of theirs."""
        modes = [self.learning_by_server.get(server, self.learning) for server in servers]
        return STRICTEST[min(STRICTEST.index(mode) for mode in modes or [self.learning])]

    @property
    def problems(self) -> tuple[str, ...]:
        """What is allowed but cannot be meant, for `doctor`."""
        named = {
            "effects": self.effects.effects,
            "reset": self.effects.reset,
            "reset_checks": self.reset_checks,
            "allow": self.effects.allow,
            "labels": self.labels.labels,
            "learning": self.learning_by_server,
            "forward": self.forward,
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
        spec: as configured; its environment file is read, its answers are looked up.
        environment: the variables placeholders may name.

    Raises:
        ConfigError: a placeholder cannot be filled (names server, key and variable), its
            environment file cannot be read, or it would start skillbank itself.
        SecretsUnusable: answers cannot be looked up.
    """
    fillers = Fillers(environment, spec.workspace, lambda name: _answer(spec, name))

    def filled(text: str, *key: str) -> str:
        try:
            return interpolate(text, fillers)
        except Unfilled as error:
            place = ".".join((spec.name, *key))
            raise ConfigError(f"server {spec.name!r}: {error}", key=place) from error

    if spec.is_ourselves:
        raise ConfigError(_recursion(spec.name), key=f"{spec.name}.command")
    from_file = (
        {} if spec.env_file is None else read_env_file(_env_file(spec, filled(spec.env_file, "envFile")))
    )
    oauth = spec.oauth
    return replace(
        spec,
        command=None if spec.command is None else filled(spec.command, "command"),
        args=tuple(filled(arg, "args", str(n)) for n, arg in enumerate(spec.args)),
        env={**from_file, **{name: filled(value, "env", name) for name, value in spec.env.items()}},
        cwd=None if spec.cwd is None else filled(spec.cwd, "cwd"),
        url=None if spec.url is None else filled(spec.url, "url"),
        headers={name: filled(value, "headers", name) for name, value in spec.headers.items()},
        oauth=replace(
            oauth,
            client_id=None if oauth.client_id is None else filled(oauth.client_id, "oauth.clientId"),
            client_secret=None
            if oauth.client_secret is None
            else filled(oauth.client_secret, "oauth.clientSecret"),
        ),
    )


def _env_file(spec: ServerSpec, name: str) -> Path:
    return Path(spec.workspace or ".", Path(name).expanduser())


def _answer(spec: ServerSpec, name: str) -> str:
    asked = spec.inputs.get(name)
    if asked is None:
        known = ", ".join(sorted(spec.inputs)) or "none"
        raise Unfilled(f"${{input:{name}}} names no input of this file; there are: {known}")
    answer = None if spec.secrets is None else spec.secrets.get(asked.key)
    if answer is None:
        raise Unfilled(f"input {name!r} ({asked.question}) is not answered: skillbank inputs set {name}")
    return answer
