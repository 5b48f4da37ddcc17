"""From families of calls to benchmark tasks: a reference workflow, and checks from answers that servers gave.

What a family expects is computed call by call by `families` and `sessions`, without the executor, the
references and the selectors that a workflow is run with; only the workflow is written in them.
`python -m server.bench.evolution_families` makes `data/evolution_tasks.json` anew on live servers.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import anyio
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from catalog.result import CallSuccess
from catalog.schema import json_type
from catalog.tools import ToolId
from server.bench.errors import BenchError
from server.bench.evolution_world import world_config
from server.bench.families import Family, PlannedStep, compile_families
from server.bench.sessions import Answering, Session, answer_of, make_session
from server.provisioning.demo_files import FIXTURES, build_fixtures
from server.provisioning.errors import TasksRejected
from server.provisioning.task_file import BenchTask

__all__ = ["AnsweredFamily", "family_task", "family_workflow", "parse_task_families", "task_families"]

_FORMS = ("given", "from", "join", "item", "all")
_PLAIN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*")
_FOUND_BY = re.compile(r"(\w+)\[\?(\w+)=='\{(\w+)\}'\]\.(\w+) \| \[0\]")
_TOLERANCE = 5e-4
_OLD = "_family"
"""Ends the ids of tasks made of compile families: some are called as a reference task is."""


class AnsweredFamily(BaseModel):
    """A family, and its outputs by name as forms over its steps (`families`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: Family
    answer: dict[str, JsonValue] = Field(min_length=1)


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: dict[str, dict[str, JsonValue]]
    """Outputs of families of the compile benchmark, by their ids."""
    families: tuple[AnsweredFamily, ...]


def task_families(fixtures: str = FIXTURES) -> list[AnsweredFamily]:
    """Return the families that tasks are made of: those of the compile benchmark, and others.

    Args:
        fixtures: folder of the files they read.

    Raises:
        TasksRejected: one says something impossible.
    """
    text = resources.files("server.bench").joinpath("data", "evolution_families.json").read_text("utf-8")
    return parse_task_families(text.replace(FIXTURES, fixtures), compile_families(fixtures))


def parse_task_families(text: str, known: Sequence[Family]) -> list[AnsweredFamily]:
    """Return the families of a document: known ones that it gives outputs to, and its own.

    Raises:
        TasksRejected: it is none, or names a family that is not known.
    """
    try:
        data = _Data.model_validate_json(text)
    except ValueError as error:
        raise TasksRejected(f"evolution families: {error}") from error
    by_id = {family.id: family for family in known}
    if unknown := sorted(data.answers.keys() - by_id.keys()):
        raise TasksRejected(f"evolution families: no compile family {', '.join(unknown)}")
    old = [
        AnsweredFamily(family=by_id[name].model_copy(update={"id": f"{name}{_OLD}"}), answer=answer)
        for name, answer in data.answers.items()
    ]
    return [*old, *data.families]


def family_workflow(answered: AnsweredFamily) -> dict[str, JsonValue]:
    """Return the workflow that does what a family's calls do, with what the task gives as inputs."""
    family = answered.family
    first = family.instances[0]
    return {
        "name": family.id,
        "inputs": {
            "type": "object",
            "properties": {name: _schema_of(value) for name, value in first.items()},
            "required": list[JsonValue](first),
        },
        "nodes": [_node(number, step) for number, step in enumerate(family.steps, 1)],
        "outputs": {name: _planned(form) for name, form in answered.answer.items()},
    }


def _schema_of(value: JsonValue) -> JsonValue:
    if isinstance(value, list) and value:
        return {"type": "array", "items": _schema_of(value[0])}
    kind = json_type(value)
    return {"type": "number" if kind == "integer" else kind}


def _node(number: int, step: PlannedStep) -> JsonValue:
    node: dict[str, JsonValue] = {
        "id": f"s{number}",
        "tool": {"server": step.tool_id.server, "tool": step.tool_id.tool},
    }
    if step.each is not None:
        node["for_each"] = _planned(step.each)
    node["arguments"] = {name: _planned(value) for name, value in step.arguments.items()}
    return node


def _planned(value: JsonValue) -> JsonValue:
    """Return a family's value as a workflow says it: references, selectors and templates for its forms."""
    match value:
        case {"given": str(name)}:
            return f"$inputs.{name}"
        case {"item": path}:
            return "$item" if path is True else _read("$item", str(path), value)
        case {"all": int(step), "read": str(path)}:
            return _selector(f"$nodes.s{step}.output", f"[*].{path}")
        case {"from": int(step), "read": str(path)}:
            return _read(f"$nodes.s{step}.output", path, value)
        case {"join": list(parts)}:
            return "".join(_template_part(part) for part in parts)
        case dict():
            return {key: _planned(inner) for key, inner in value.items()}
        case list():
            return [_planned(inner) for inner in value]
        case _:
            return value


def _template_part(part: JsonValue) -> str:
    if not isinstance(part, dict):
        return str(part)
    planned = _planned(part)
    if not isinstance(planned, str):
        raise TasksRejected(f"{json.dumps(part)} cannot stand inside a text")
    return "{" + planned + "}"


def _read(root: str, path: str, form: Mapping[str, JsonValue]) -> JsonValue:
    pattern, is_number = form.get("match"), bool(form.get("number"))
    if pattern is None and not is_number and _PLAIN.fullmatch(path):
        parts = re.findall(r"\w+", path)
        return f"{root}#/{'/'.join(parts)}"
    if found := _FOUND_BY.fullmatch(path):
        items, key, given, field = found.groups()
        expression = f"find_item(context.{items}, '{key}', {given}).{field}"
        return {**_selector(root, expression), "with": {given: f"$inputs.{given}"}}
    expression = path
    if isinstance(pattern, str):
        expression = f"regex_capture({expression}, '{pattern}')"
    if is_number:
        expression = f"to_number(replace({expression}, ',', ''))" if pattern else f"to_number({expression})"
    return _selector(root, expression)


def _selector(context: str, expression: str) -> dict[str, JsonValue]:
    return {"context": context, "selector": expression, "type": "jmespath"}


async def family_task(answered: AnsweredFamily, answering: Answering) -> BenchTask:
    """Return the task of a family: its first instance, with the others held out.

    Args:
        answered: the family with its outputs.
        answering: calls a live server.

    Raises:
        TasksRejected: a server answers otherwise than the family says.
    """
    sessions = [await make_session(answered.family, number, answering) for number in range(3)]
    first, *others = sessions
    return BenchTask.model_validate(
        {
            "id": answered.family.id,
            "task": first.task,
            "servers": answered.family.servers,
            "inputs": first.given,
            "workflow": family_workflow(answered),
            "assertions": _checks(answered, first),
            "held_out": [{"inputs": other.given, "assertions": _checks(answered, other)} for other in others],
        }
    )


def _checks(answered: AnsweredFamily, session: Session) -> list[str]:
    return [
        check
        for name, form in answered.answer.items()
        for check in _checks_of(f"output.{name}", answer_of(session, form))
    ]


def _checks_of(place: str, expected: JsonValue) -> list[str]:
    match expected:
        case bool() | str() | None:
            return [f"{place} == {_literal(expected)}"]
        case int() | float():
            tolerance = f"{max(abs(expected), 1e-6) * _TOLERANCE:.10g}"
            return [f"approx({place}, `{expected:.10g}`, `{tolerance}`)"]
        case list() if all(isinstance(item, int | float) and not isinstance(item, bool) for item in expected):
            told = [f"length({place}) == `{len(expected)}`"]
            return told + [c for at, item in enumerate(expected) for c in _checks_of(f"{place}[{at}]", item)]
        case _:
            return [f"{place} == {_literal(expected)}"]


def _literal(value: JsonValue) -> str:
    return "`" + json.dumps(value, ensure_ascii=False).replace("`", "\\`") + "`"


async def _make(folder: Path) -> list[BenchTask]:
    from server.settings import read_settings
    from server.wiring import open_bank

    fixtures = folder / "fixtures"
    fixtures.mkdir()
    build_fixtures(fixtures)
    answered = task_families(str(fixtures))
    config = world_config(folder, sorted({name for one in answered for name in one.family.servers}))
    async with open_bank(read_settings(config=config, store=folder / "store.db")) as bank:

        async def answering(tool: ToolId, arguments: dict[str, JsonValue]) -> JsonValue:
            outcome = await bank.call_tool(tool, arguments)
            if not isinstance(outcome, CallSuccess):
                raise BenchError(f"{tool} {json.dumps(arguments)} fails: {outcome.message}")
            return outcome.output

        return [await family_task(one, answering) for one in answered]


def main(path: Path) -> None:
    """Write the tasks of all families to a file."""
    with TemporaryDirectory(prefix="skillbank-bench-") as made:
        folder = Path(made)
        tasks = anyio.run(_make, folder)
        documents = [cast("JsonValue", task.model_dump(mode="json", exclude_none=True)) for task in tasks]
        hidden = TypeAdapter(list[JsonValue]).validate_python(documents)
        lines = [json.dumps(document, ensure_ascii=False) for document in hidden]
        text = "[\n" + ",\n".join(lines) + "\n]\n"
        path.write_text(text.replace(str(folder / "fixtures"), FIXTURES), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
