"""Options that several commands share, and how their texts become values.

A value that cannot be read is misuse, found before anything is started.
"""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from pydantic import JsonValue

from catalog.config import ModelSpec, parse_model
from catalog.errors import SchemaRejected
from catalog.schema import check_schema
from server.cli.ports import Wiring
from server.cli.session import Session
from server.requests import Budget
from server.settings import read_settings
from server.verification import Checks
from skills_store.workflow.assertions import assertion_problem

__all__ = [
    "DOCUMENT",
    "EXISTING",
    "JSON_OBJECT",
    "MODEL",
    "SKILL_NAME",
    "TOOL_PATTERN",
    "allow_option",
    "budget_options",
    "check_folders",
    "check_options",
    "examples_option",
    "inputs_option",
    "model_option",
    "save_option",
    "session_command",
    "tokens_option",
]

_F = TypeVar("_F", bound=Callable[..., Any])

EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


def check_folders(files: Mapping[str, Path | None]) -> None:
    """Refuse files, by their option, that could not be written when everything is done.

    Raises:
        click.UsageError: names the option, the file and its folder.
    """
    for option, path in files.items():
        if path is not None and not path.parent.is_dir():
            raise click.UsageError(f"{option} {path}: there is no folder {path.parent}")
        if path is not None and not os.access(path.parent, os.W_OK):
            raise click.UsageError(f"{option} {path}: nothing may be written in {path.parent}")


class _Document(click.ParamType[bytes]):
    """The bytes of a file, or of stdin for `-`."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:  # noqa: ANN401
        with cast("Any", click.File("rb")).convert(value, param, ctx) as file:
            try:
                return cast("bytes", file.read())
            except OSError as error:
                self.fail(f"{value}: {error.strerror}", param, ctx)


class _JsonObject(click.ParamType[dict[str, JsonValue]]):
    """A JSON object: the text itself, or @FILE."""

    name = "json|@file"

    def convert(
        self,
        value: Any,  # noqa: ANN401
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> dict[str, JsonValue]:
        if isinstance(value, dict):
            return cast("dict[str, JsonValue]", value)
        text = str(value)
        source = f"{text[1:]}: " if text.startswith("@") else ""
        try:
            if source:
                text = Path(text[1:]).read_text("utf-8")
            parsed: object = json.loads(text, parse_constant=_refuse_constant)
        except (OSError, UnicodeDecodeError) as error:
            self.fail(f"{value} cannot be read: {error}", param, ctx)
        except (ValueError, RecursionError) as error:
            self.fail(f"{source}not JSON: {error}", param, ctx)
        if not isinstance(parsed, dict):
            self.fail(f"{source}must be a JSON object", param, ctx)
        return cast("dict[str, JsonValue]", parsed)


class _ToolPattern(click.ParamType[str]):
    """`SERVER/TOOL`; the tool may be a glob pattern."""

    name = "server/tool"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        server, slash, tool = str(value).partition("/")
        if not (server and slash and tool):
            self.fail(f"{value!r} is not SERVER/TOOL", param, ctx)
        return str(value)


class _SkillName(click.ParamType[str]):
    """A name that a skill can have."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        text = str(value)
        if not (
            len(text) <= 40
            and text[:1].islower()
            and text.isascii()
            and text.isidentifier()
            and text.islower()
        ):
            self.fail(f"{text!r} is no skill name: small letters, digits and _, at most 40", param, ctx)
        return text


class _Assertion(click.ParamType[str]):
    """An assertion that can be read."""

    name = "expr"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        if (problem := assertion_problem(str(value))) is not None:
            self.fail(f"{value!r}: {problem}", param, ctx)
        return str(value)


class _Model(click.ParamType[ModelSpec]):
    """A model as one string."""

    name = "model"

    def convert(
        self,
        value: Any,  # noqa: ANN401
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> ModelSpec:
        if isinstance(value, ModelSpec):
            return value
        try:
            return parse_model(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


DOCUMENT = _Document()
JSON_OBJECT = _JsonObject()
TOOL_PATTERN = _ToolPattern()
SKILL_NAME = _SkillName()
MODEL = _Model()


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def session_command(command: _F) -> _F:
    """Give a command `--config`, `--store` and `--json`, and the session they make as first argument."""

    @click.option(
        "--config",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Server configuration (mcpServers JSON). Default: $SKILLBANK_CONFIG or your config folder.",
    )
    @click.option(
        "--store",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Where skills and traces are kept. Default: $SKILLBANK_STORE or your data folder.",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON value on stdout and nothing else.")
    @click.pass_obj
    @functools.wraps(command)
    def with_session(
        wiring: Wiring,
        /,
        *,
        config: Path | None,
        store: Path | None,
        as_json: bool,
        **given: object,
    ) -> object:
        settings = read_settings(config=config, store=store)
        return command(Session(settings, wiring, as_json), **given)

    return cast("_F", with_session)


def check_options(command: _F) -> _F:
    """Give a command `--assert` and `--expect-schema`, passed on as `checks`."""

    @click.option(
        "--assert",
        "assertions",
        multiple=True,
        type=_Assertion(),
        metavar="EXPR",
        help="What must hold of output, inputs and nodes, in jmespath. In single quotes, since "
        "backticks are its literals. May be given several times.",
    )
    @click.option(
        "--expect-schema",
        type=EXISTING,
        metavar="FILE",
        help="JSON Schema that the outputs must fit.",
    )
    @functools.wraps(command)
    def with_checks(*, assertions: tuple[str, ...], expect_schema: Path | None, **given: object) -> object:
        schema = None
        if expect_schema is not None:
            schema = JSON_OBJECT.convert(f"@{expect_schema}", None, None)
            try:
                check_schema(schema)
            except SchemaRejected as error:
                raise SchemaRejected(f"{expect_schema}: {error}") from error
        return command(checks=Checks(assertions=assertions, schema=schema), **given)

    return cast("_F", with_checks)


def budget_options(command: _F) -> _F:
    """Give a command `--budget-seconds` and `--budget-calls`, passed on as `budget`."""
    standard = Budget()

    @click.option(
        "--budget-seconds",
        type=click.FloatRange(min=0),
        default=standard.seconds,
        show_default=True,
        help="Time the search may take; 0 checks the original and returns it.",
    )
    @click.option(
        "--budget-calls",
        type=click.IntRange(min=0),
        default=standard.calls,
        show_default=True,
        help="Calls to tool servers the search may make.",
    )
    @functools.wraps(command)
    def with_budget(*, budget_seconds: float, budget_calls: int, **given: object) -> object:
        if math.isnan(budget_seconds):
            raise click.BadParameter("is no number of seconds", param_hint="--budget-seconds")
        return command(budget=Budget(seconds=budget_seconds, calls=budget_calls), **given)

    return cast("_F", with_budget)


model_option = click.option(
    "--model",
    type=MODEL,
    metavar="MODEL",
    help="Model for this run, in every role: anthropic:MODEL, openai:MODEL, openai-compatible:URL#MODEL, "
    "local:NAME or none. Default: $SKILLBANK_MODEL or your configuration.",
)
tokens_option = click.option(
    "--budget-tokens",
    type=click.IntRange(min=0),
    default=Budget().tokens,
    show_default=True,
    help="Tokens of a model, prompts and answers together; 0 asks none.",
)
inputs_option = click.option(
    "--inputs",
    type=JSON_OBJECT,
    default="{}",
    metavar="JSON|@FILE",
    help="Values of the workflow's inputs, as a JSON object or in a file.",
)
allow_option = click.option(
    "--allow",
    multiple=True,
    type=TOOL_PATTERN,
    metavar="SERVER/TOOL",
    help="A tool that is not known to be free and may run once without asking. May be given several times.",
)
save_option = click.option(
    "--save",
    type=SKILL_NAME,
    metavar="NAME",
    help="On verified success compile the workflow to a skill of this name and admit it.",
)

examples_option = click.option(
    "--example",
    "examples",
    multiple=True,
    type=JSON_OBJECT,
    metavar="JSON|@FILE",
    help="Other inputs known to be valid, on which the skill is tried. May be given several times.",
)
