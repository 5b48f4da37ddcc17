"""What a configuration document means: the server entries of each host, and our own key.

`mcpServers` (Claude Desktop, Claude Code, Cursor, ourselves), `servers` (VS Code) and
`mcp_servers` (Codex). Keys of other hosts are ignored here and kept on rewrite; a wrong value of
a key that is read names file, line and key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    ValidationError,
)

from catalog.canonical import JsonValue
from catalog.config.curation import CurationSpec
from catalog.config.document import ConfigDocument, KeyPath
from catalog.config.inputs import InputEntry, InputSpec
from catalog.config.model import (
    IDLE_SECONDS,
    OWN_KEYS,
    STRICTEST,
    Config,
    Forwarded,
    Learning,
    OAuthSpec,
    ResetCheck,
    ServerSpec,
    Transport,
)
from catalog.config.models import EMBEDDINGS, MODEL_KEYS, ModelSpec, parse_embeddings, parse_model
from catalog.effects import Effect, EffectTable, Reset
from catalog.labels import Label, LabelTable

__all__ = ["SERVER_KEYS", "name_problem", "parse_config", "parse_inputs", "parse_profile", "parse_servers"]

SERVER_KEYS = ("mcpServers", "servers", "mcp_servers")
"""Where the known hosts keep their servers: Claude and Cursor, VS Code, Codex."""

_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}

_M = TypeVar("_M", bound=BaseModel)
_Seconds = Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)]
_Wait = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]


def _address(url: str) -> str:
    if not url.startswith(("http://", "https://", "${")):
        raise ValueError("must be an http or https address")
    return url


def _document_address(url: str) -> str:
    if not url.startswith("https://") or urlsplit(url).path in ("", "/"):
        raise ValueError("must be the https address of a document")
    return url


def _spelled_out(value: object) -> object:
    return {} if value == "oauth" else value


class _OAuth(BaseModel):
    """What is said of logging in, in the spelling of Claude Code or of Cursor."""

    model_config = ConfigDict(extra="ignore")

    client_id: StrictStr | None = Field(default=None, validation_alias=AliasChoices("clientId", "CLIENT_ID"))
    client_secret: StrictStr | None = Field(
        default=None, validation_alias=AliasChoices("clientSecret", "CLIENT_SECRET")
    )
    client_metadata_url: Annotated[StrictStr, AfterValidator(_document_address)] | None = Field(
        default=None, validation_alias="clientMetadataUrl"
    )
    callback_port: Annotated[int, Field(ge=1, le=65_535, strict=True)] | None = Field(
        default=None, validation_alias="callbackPort"
    )

    def to_spec(self) -> OAuthSpec:
        return OAuthSpec(**self.model_dump())


class _Entry(BaseModel):
    """One server as any of the hosts writes it."""

    model_config = ConfigDict(extra="ignore")

    type: StrictStr | None = None
    transport: StrictStr | None = None
    command: StrictStr | None = Field(default=None, min_length=1)
    args: tuple[StrictStr, ...] = ()
    env: dict[str, StrictStr] = Field(default_factory=dict[str, str])
    cwd: StrictStr | None = None
    url: Annotated[StrictStr, AfterValidator(_address)] | None = None
    headers: dict[str, StrictStr] = Field(default_factory=dict[str, str])
    http_headers: dict[str, StrictStr] = Field(default_factory=dict[str, str])
    env_http_headers: dict[str, StrictStr] = Field(default_factory=dict[str, str])
    bearer_token_env_var: StrictStr | None = None
    timeout_seconds: _Seconds | None = Field(
        default=None, validation_alias=AliasChoices("timeout_seconds", "tool_timeout_sec")
    )
    idle_seconds: _Wait | None = None
    parallel_calls: Annotated[int, Field(ge=1, strict=True)] | None = None
    disabled: StrictBool = False
    enabled: StrictBool = True
    env_file: StrictStr | None = Field(default=None, validation_alias="envFile")
    env_vars: tuple[StrictStr, ...] = ()
    oauth: Annotated[_OAuth, BeforeValidator(_spelled_out)] = Field(
        default=_OAuth(), validation_alias=AliasChoices("oauth", "auth")
    )


class _ResetCheck(BaseModel):
    """One trial of a reset mode, as it is kept."""

    model_config = ConfigDict(extra="ignore")

    mode: Reset
    verdict: Literal["holds", "refuted", "undecided"]
    on: StrictStr
    why: StrictStr

    def to_value(self) -> ResetCheck:
        return ResetCheck(self.mode, self.verdict, self.on, self.why)


def _tool_name(text: str) -> str:
    server, slash, tool = text.partition("/")
    if not (server and slash and tool):
        raise ValueError("must be SERVER/TOOL, patterns allowed")
    return text


_ToolName = Annotated[StrictStr, AfterValidator(_tool_name)]


_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Curation(BaseModel):
    """How the bank is kept good."""

    model_config = ConfigDict(extra="forbid")

    withhold: Annotated[float, Field(ge=0, le=0.5, allow_inf_nan=False)] = CurationSpec.withhold
    error_rate: Annotated[float, Field(gt=0, le=0.2, allow_inf_nan=False)] = CurationSpec.error_rate
    audit_every: Annotated[int, Field(ge=0, strict=True)] = CurationSpec.audit_every
    unused_days: _Amount = CurationSpec.unused_days
    most_active: Annotated[int, Field(ge=0, strict=True)] = CurationSpec.most_active
    most_megabytes: _Amount = CurationSpec.most_megabytes
    keep_runs_days: _Amount = CurationSpec.keep_runs_days
    keep_recordings_days: _Amount = CurationSpec.keep_recordings_days

    def to_spec(self) -> CurationSpec:
        return CurationSpec(**self.model_dump())


class _Own(BaseModel):
    """The `skillbank` key."""

    model_config = ConfigDict(extra="ignore")

    effects: dict[str, dict[str, Effect]] = Field(default_factory=dict[str, dict[str, Effect]])
    reset: dict[str, Reset] = Field(default_factory=dict[str, Reset])
    reset_checks: dict[str, _ResetCheck] = Field(default_factory=dict[str, _ResetCheck])
    allow: dict[str, tuple[StrictStr, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    labels: dict[str, dict[str, tuple[Label, ...]]] = Field(
        default_factory=dict[str, dict[str, tuple[Label, ...]]]
    )
    flows: dict[_ToolName, tuple[_ToolName, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    learning: JsonValue = "auto"
    models: dict[str, StrictStr] = Field(default_factory=dict[str, str])
    principals: dict[str, tuple[StrictStr, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    idle_seconds: _Wait = IDLE_SECONDS
    curation: _Curation = _Curation()
    forward: dict[str, frozenset[Forwarded]] = Field(default_factory=dict[str, frozenset[Forwarded]])
    publish: Annotated[int, Field(ge=0, strict=True)] | None = None


def parse_config(document: ConfigDocument) -> Config:
    """Return the configuration of a document.

    Raises:
        ConfigError: names file, line and key.
    """
    tables = (("skillbank", key) for key in ("effects", "reset", "labels", "flows", "learning", "forward"))
    if (twice := document.doubled(*tables)) is not None:
        raise document.error(f"{twice[-1]!r} stands twice", twice)
    own = _validated(_Own, document, document.data.get("skillbank", {}), ("skillbank",))
    by_server = _learning(document, own.learning)
    return Config(
        servers=parse_servers(document),
        effects=EffectTable(effects=own.effects, reset=own.reset, allow=own.allow),
        reset_checks={server: check.to_value() for server, check in own.reset_checks.items()},
        labels=_labels(own),
        learning=by_server.pop("*", "auto"),
        learning_by_server=by_server,
        models=_models(document, own.models),
        idle_seconds=own.idle_seconds,
        curation=own.curation.to_spec(),
        principals=own.principals,
        inputs=parse_inputs(document),
        forward=own.forward,
        publish=own.publish,
        path=document.path,
        document=document.data,
    )


def _labels(own: _Own) -> LabelTable:
    labels = {
        server: {pattern: frozenset(given) for pattern, given in of.items()}
        for server, of in own.labels.items()
    }
    return LabelTable(labels, own.flows)


def _learning(document: ConfigDocument, said: JsonValue) -> dict[str, Learning]:
    """Return the learning modes by server, that of the bank under `*`."""
    by_server = said if isinstance(said, dict) else {"*": said}
    for server, mode in by_server.items():
        if mode not in STRICTEST:
            place = ("skillbank", "learning", *((server,) if isinstance(said, dict) else ()))
            raise document.error("Input should be 'auto', 'propose' or 'off'", place)
    return cast("dict[str, Learning]", {**by_server})


def _models(document: ConfigDocument, named: dict[str, str]) -> dict[str, ModelSpec]:
    if (twice := document.doubled(("skillbank", "models"))) is not None:
        raise document.error(f"{twice[-1]!r} stands twice", twice)
    models: dict[str, ModelSpec] = {}
    for key, text in named.items():
        place = ("skillbank", "models", key)
        if key not in MODEL_KEYS:
            raise document.error(f"no such role; there are: {', '.join(MODEL_KEYS)}", place)
        try:
            models[key] = parse_embeddings(text) if key == EMBEDDINGS else parse_model(text)
        except ValueError as error:
            raise document.error(str(error), place) from error
    return models


def parse_profile(document: ConfigDocument) -> EffectTable:
    """Return the effect table of a document that is what the `skillbank` key holds.

    Raises:
        ConfigError: names file, line and key.
    """
    own = _validated(_Own, document, document.data, ())
    if (unknown := next((key for key in document.data if key not in OWN_KEYS), None)) is not None:
        raise document.error(f"no such key; there are: {', '.join(OWN_KEYS)}", (unknown,))
    return EffectTable(effects=own.effects, reset=own.reset, allow=own.allow)


def parse_servers(document: ConfigDocument) -> dict[str, ServerSpec]:
    """Return the servers of a document in its order, under whichever key its host uses.

    Raises:
        ConfigError: names file, line and key.
    """
    if (twice := document.doubled(*((key,) for key in SERVER_KEYS))) is not None:
        raise document.error(f"server {twice[-1]!r} stands twice", twice)
    servers: dict[str, ServerSpec] = {}
    inputs = parse_inputs(document)
    for key in SERVER_KEYS:
        table = document.data.get(key, {})
        if not isinstance(table, dict):
            raise document.error("must be an object of servers by name", (key,))
        for name, entry in table.items():
            if name in servers:
                raise document.error(f"server {name!r} stands under two keys", (key, name))
            servers[name] = _spec(document, (key, name), entry, inputs)
    return servers


def parse_inputs(document: ConfigDocument) -> dict[str, InputSpec]:
    """Return the inputs of a document by id.

    Raises:
        ConfigError: names file, line and key.
    """
    listed = document.data.get("inputs", [])
    if not isinstance(listed, list):
        raise document.error("must be a list of inputs", ("inputs",))
    inputs: dict[str, InputSpec] = {}
    for number, value in enumerate(listed):
        place = ("inputs", number)
        entry = _validated(InputEntry, document, value, place)
        if entry.id in inputs:
            raise document.error(f"input {entry.id!r} stands twice", (*place, "id"))
        inputs[entry.id] = entry.to_spec(f"input {entry.id} of {document.path.absolute()}")
    return inputs


def name_problem(name: str) -> str | None:
    """Return what is wrong with a server's name, or None."""
    if not name.strip():
        return "a server needs a name"
    if "__" in name or "/" in name:
        return f"server name {name!r} may not contain '__' or '/'"
    return None


def _spec(
    document: ConfigDocument, place: KeyPath, value: JsonValue, inputs: Mapping[str, InputSpec]
) -> ServerSpec:
    name = str(place[-1])
    if (problem := name_problem(name)) is not None:
        raise document.error(problem, place)
    entry = _validated(_Entry, document, value, place)
    transport = _transport(document, place, entry)
    needed = "command" if transport == "stdio" else "url"
    if getattr(entry, needed) is None:
        raise document.error(f"a server over {transport} needs {needed!r}", place)
    return ServerSpec(
        name=name,
        command=entry.command if transport == "stdio" else None,
        args=entry.args if transport == "stdio" else (),
        env={**{name: f"${{{name}}}" for name in entry.env_vars}, **entry.env},
        cwd=entry.cwd,
        url=None if transport == "stdio" else entry.url,
        headers=_headers(entry),
        transport=transport,
        timeout_seconds=entry.timeout_seconds,
        idle_seconds=entry.idle_seconds,
        parallel_calls=entry.parallel_calls,
        disabled=entry.disabled or not entry.enabled,
        workspace=_workspace(document),
        env_file=entry.env_file,
        oauth=entry.oauth.to_spec(),
        inputs=inputs,
    )


def _transport(document: ConfigDocument, place: KeyPath, entry: _Entry) -> Transport:
    for key, declared in (("type", entry.type), ("transport", entry.transport)):
        if declared is not None:
            if declared not in _TRANSPORTS:
                known = ", ".join(sorted(_TRANSPORTS))
                raise document.error(f"{declared!r} is no known transport: {known}", (*place, key))
            return _TRANSPORTS[declared]
    if entry.command is not None and entry.url is not None:
        raise document.error("has both 'command' and 'url': say which with 'type'", place)
    if entry.command is None and entry.url is None:
        raise document.error("needs 'command' or 'url'", place)
    if entry.url is None:
        return "stdio"
    return "sse" if urlsplit(entry.url).path.rstrip("/").endswith("/sse") else "http"


def _headers(entry: _Entry) -> dict[str, str]:
    """Return the headers, with those Codex takes from the environment as placeholders."""
    from_environment = {header: f"${{{name}}}" for header, name in entry.env_http_headers.items()}
    bearer = entry.bearer_token_env_var
    token = {"Authorization": f"Bearer ${{{bearer}}}"} if bearer else {}
    return {**entry.headers, **entry.http_headers, **from_environment, **token}


def _workspace(document: ConfigDocument) -> str:
    folder = document.path.absolute().parent
    return str(folder.parent if folder.name in (".vscode", ".cursor") else folder)


def _validated(model: type[_M], document: ConfigDocument, value: JsonValue, place: KeyPath) -> _M:
    if not isinstance(value, dict):
        raise document.error("must be an object", place)
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        message = problem["msg"].removeprefix("Value error, ").replace("valid tuple", "valid list")
        raise document.error(message, (*place, *problem["loc"])) from error
