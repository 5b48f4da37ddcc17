"""Selection: is the right skill run for a task, and none where there is none, among many others.

Skills come from the accuracy part. Every second family's is in the bank, and its third instance is
the task; the other families' tasks have no right skill there. Distractors are synthetic: chains of
real tools of the connected servers told in their own descriptions, and near misses, which are
skills of the families whose task says one word otherwise. All are marked active.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from random import Random

from pydantic import JsonValue

from catalog.tools import JsonSchema, Snapshot, Tool
from server.bench.compile_report import SelectionReport, SelectionRow
from server.bench.families import Family
from server.planning.patterns import TaskPatterns
from server.planning.router import Direct, choose_route
from skills_store.retrieval import Circumstances, SkillIndex
from skills_store.skill import Provenance, ReplayTest, Signature, Skill
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Node, Workflow

__all__ = ["distractors_of", "measure_selection"]

_SOURCE = (
    "synthetic: chains of one to three real tools of the connected servers, told in the tools' own"
    " descriptions, and near misses, a family's skill whose task says one word otherwise"
)
_OTHERWISE = {
    "mean": "median", "Multiply": "Divide", "multiply": "divide", "Add": "Subtract", "add": "remove",
    "subtract": "add", "kilometers": "meters", "km": "cm", "SHA-256": "SHA-512", "SHA1": "SHA-384",
    "MD5": "SHA-224", "Celsius": "Kelvin", "feet": "yards", "squared": "cubed", "square": "cube",
    "first": "last", "next": "previous", "highest": "lowest", "average": "total", "seconds": "hours",
    "divide": "multiply", "interest": "principal", "grams": "pounds", "usable": "reserved",
    "convert": "compare", "Convert": "Compare", "hash": "sign",
}  # fmt: skip
_NEAR_SHARE = 4
"""One distractor in so many is a near miss, while there are any."""
_WORDS = ("harbour", "Oslo", "blue", "2026-05-04", "v2.1", "alpha", "north", "report", "Ada", "weekly")


def measure_selection(
    families: Sequence[Family],
    skills: Mapping[str, Skill],
    snapshot: Snapshot,
    counts: Sequence[int],
    seed: int,
) -> SelectionReport:
    """Return what routing and finding make of tasks, for each number of distractors.

    Args:
        families: in a fixed order.
        skills: by family; those that have none are no tasks.
        snapshot: the tools that distractors are made of.
        counts: numbers of distractors.
        seed: of the distractors.
    """
    told = [family for family in families if family.id in skills]
    inside, outside = told[::2], told[1::2]
    active = [_active(skills[family.id], family) for family in inside]
    others = list(islice(distractors_of(told, skills, snapshot, seed), max(counts)))
    rows = [_row(active, others[:count], inside, outside) for count in counts]
    return SelectionReport(rows=tuple(rows), source=_SOURCE)


def _active(skill: Skill, family: Family) -> Skill:
    return skill.model_copy(update={"name": family.id, "state": "active"})


def _chosen(task: str, patterns: TaskPatterns) -> Direct | None:
    """Return the skill that would run at once; one with an input to be looked for does not."""
    direct = choose_route(task, {}, patterns.candidates(task)).direct
    return direct if direct is not None and not direct.missing else None


def _row(
    active: Sequence[Skill], others: Sequence[Skill], inside: Sequence[Family], outside: Sequence[Family]
) -> SelectionRow:
    bank = [*active, *others]
    index, patterns = SkillIndex(bank), TaskPatterns(bank)
    by_name = {skill.name: skill for skill in active}
    direct = wrong = first = five = strange_direct = 0
    taken: list[float] = []
    for family in inside:
        task = family.said(family.instances[2])
        started = time.process_time()
        route = _chosen(task, patterns)
        alike = Circumstances(alike=partial(patterns.likeness, task))
        found = [hit.skill.name for hit in index.search(task, 5, alike)]
        taken.append((time.process_time() - started) * 1000)
        is_right = route is not None and route.skill.name == family.id
        is_right = is_right and route is not None and _is_bound(route, by_name[family.id], family)
        direct += is_right
        wrong += route is not None and not is_right
        first += found[:1] == [family.id]
        five += family.id in found
    for family in outside:
        strange_direct += _chosen(family.said(family.instances[2]), patterns) is not None
    return SelectionRow(
        distractors=len(others),
        tasks=len(inside),
        direct_right=direct,
        direct_wrong=wrong,
        abstained=len(inside) - direct - wrong,
        found_first=first,
        found_in_five=five,
        strange=len(outside),
        strange_direct=strange_direct,
        milliseconds=statistics.quantiles(taken, n=20)[-1] if len(taken) > 1 else 0.0,
    )


def _is_bound(route: Direct, skill: Skill, family: Family) -> bool:
    """Return whether every input has the value that the third task gives for it."""
    one, third = family.instances[0], family.instances[2]
    for name, sample in skill.tests[0].inputs.items():
        given = next((key for key, value in one.items() if _text(value) == _text(sample)), None)
        if given is not None and _text(route.inputs.get(name)) != _text(third[given]):
            return False
    return True


def _text(value: JsonValue) -> str:
    match value:
        case bool() | None:
            return str(value)
        case int() | float():
            return f"{float(value):.12g}"
        case list():
            return ",".join(_text(item) for item in value)
        case _:
            return str(value).strip().casefold()


def distractors_of(
    families: Sequence[Family], skills: Mapping[str, Skill], snapshot: Snapshot, seed: int
) -> Iterator[Skill]:
    """Yield skills that are no task's, ever new ones, the same for the same seed."""
    dice = Random(f"distractors:{seed}")
    tools = sorted(snapshot, key=lambda tool: tool.id)
    near = _near_misses(families, skills)
    number = 0
    while True:
        number += 1
        missed = next(near, None) if number % _NEAR_SHARE == 0 else None
        yield missed or _chain(tools, number, dice)


def _near_misses(families: Sequence[Family], skills: Mapping[str, Skill]) -> Iterator[Skill]:
    number = 0
    for family in families:
        skill = skills[family.id]
        for word, other in _OTHERWISE.items():
            said = family.said(family.instances[0])
            if f" {word} " in said:
                task = said.replace(f" {word} ", f" {other} ")
                number += 1
                name = f"{family.id[:24]}_near_{number}"
                provenance = skill.provenance.model_copy(update={"task": task})
                yield skill.model_copy(update={"name": name, "state": "active", "provenance": provenance})


def _chain(tools: Sequence[Tool], number: int, dice: Random) -> Skill:
    chosen = dice.sample(tools, k=min(len(tools), dice.randint(1, 3)))
    inputs: dict[str, JsonValue] = {}
    properties: JsonSchema = {}
    nodes: list[Node] = []
    told: list[str] = []
    for at, tool in enumerate(chosen):
        arguments: dict[str, JsonValue] = {}
        for name, schema in _required(tool):
            key = f"{name}_{at}" if name in inputs else name
            inputs[key] = _value(schema, dice)
            properties[key] = {"type": schema.get("type", "string")}
            arguments[name] = f"$inputs.{key}"
        nodes.append(Node(id=f"step_{at}", tool=tool.id, arguments=arguments))
        sentence = tool.description.strip().split("\n")[0].split(". ")[0] or tool.id.tool
        values = ", ".join(f"{key} {_shown(inputs[key])}" for key in inputs if key in properties)
        told.append(f"{sentence} with {values}" if values else sentence)
    workflow = Workflow(
        name=f"chain_{number}",
        inputs={"type": "object", "properties": properties, "required": list(inputs)},
        nodes=tuple(nodes),
        outputs={"result": f"$nodes.{nodes[-1].id}.output"},
    )
    return Skill(
        name=workflow.name,
        version=1,
        state="active",
        reason="a distractor",
        title=None,
        description="; then ".join(told)[:400],
        workflow=workflow,
        content_hash=content_hash(workflow),
        shape_hash=shape_hash(workflow),
        signature=Signature(
            input_schema=workflow.inputs, output_schema={"type": "object", "properties": {"result": {}}}
        ),
        tests=(ReplayTest(name="original", inputs=inputs, outputs={"result": None}),),
        pins=(),
        provenance=Provenance(task="; then ".join(told)[:400]),
        tags=tuple(sorted({tool.id.server for tool in chosen})),
        created_at=0.0,
    )


def _required(tool: Tool) -> Iterator[tuple[str, JsonSchema]]:
    properties, required = tool.input_schema.get("properties"), tool.input_schema.get("required")
    for name in required if isinstance(required, list) else ():
        schema = properties.get(str(name)) if isinstance(properties, dict) else None
        yield str(name), schema if isinstance(schema, dict) else {}


def _value(schema: JsonSchema, dice: Random) -> JsonValue:
    options = schema.get("enum")
    if isinstance(options, list) and options:
        return dice.choice(options)
    if schema.get("type") in ("number", "integer"):
        return dice.randint(2, 900)
    return dice.choice(_WORDS)


def _shown(value: JsonValue) -> str:
    return str(value)
