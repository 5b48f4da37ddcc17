"""The evolution benchmark's parts: mix and simulator, a model's edits on tape, ReAct, rows and table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catalog.tools import Snapshot, Tool, ToolId
from server.backends.backend import Message, Request
from server.backends.scripted import ScriptedBackend
from server.bench.damage import DamageKind
from server.bench.errors import BenchError
from server.bench.evolution_bench import quick_evolution_options, recorded_tapes, run_evolution_bench
from server.bench.evolution_editor import EditorTape
from server.bench.evolution_mcpbench import mcp_bench_tasks
from server.bench.evolution_mix import STRENGTHS, faults_against, measured_mix, simulate
from server.bench.evolution_react import Action, read_action
from server.bench.evolution_report import EvolutionReport, PlanOutcome, groups_of
from server.bench.evolution_table import render_evolution_report
from server.bench.planning_tape import About, NotRecorded, Tape, new_tape, read_tape
from server.provisioning.task_file import BenchTask
from server.wiring import open_bank
from skills_store.workflow.model import parse_workflow

pytestmark = pytest.mark.anyio

ABOUT = About(model="m", quantisation="Q4", machine="here", context_tokens=8_192)
NUMBER = {"type": "number"}


def tool(name: str, **properties: Any) -> Tool:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    answer: dict[str, Any] = {"type": "object", "properties": {"result": NUMBER}, "required": ["result"]}
    return Tool(ToolId("sums", name), schema, answer)


TOOLS = Snapshot.of(*(tool(name, a=NUMBER, b=NUMBER) for name in ("add", "subtract", "multiply", "divide")))


def node(name: str, tool: str, a: Any, b: Any, **more: Any) -> dict[str, Any]:
    place = {"server": "sums", "tool": tool}
    return {"id": name, "tool": place, "arguments": {"a": a, "b": b}, **more}


def workflow(*nodes: dict[str, Any]) -> dict[str, Any]:
    inputs = {"type": "object", "properties": {"n": NUMBER}, "required": ["n"]}
    outputs = {"total": f"$nodes.{nodes[-1]['id']}.output#/result"}
    return {"name": "w", "inputs": inputs, "nodes": list(nodes), "outputs": outputs}


REFERENCE = workflow(
    node("twice", "multiply", "$inputs.n", 2),
    node("more", "add", "$nodes.twice.output#/result", 10),
    node("part", "divide", "$nodes.more.output#/result", 4),
)


@pytest.mark.parametrize(
    ("nodes", "counted"),
    [
        (REFERENCE["nodes"], {}),
        (REFERENCE["nodes"][:2], {DamageKind.MISSING_STEP: 1}),
        (
            [*REFERENCE["nodes"], node("again", "add", "$nodes.part.output#/result", 0)],
            {DamageKind.EXTRA_STEP: 1},
        ),
        (
            [*REFERENCE["nodes"][:2], node("part", "subtract", "$nodes.more.output#/result", 4)],
            {DamageKind.WRONG_TOOL: 1},
        ),
        (
            [*REFERENCE["nodes"][:2], node("part", "divide", "$nodes.more.output#/result", 5)],
            {DamageKind.WRONG_VALUE: 1},
        ),
        (
            [*REFERENCE["nodes"][:2], node("part", "divide", "$nodes.more.output#/sum", 4)],
            {DamageKind.DANGLING_REFERENCE: 1},
        ),
        (
            [*REFERENCE["nodes"][:2], node("part", "divide", "$nodes.twice.output#/result", 4)],
            {DamageKind.WRONG_ORDER: 1},
        ),
        (
            [*REFERENCE["nodes"][:2], node("part", "divide", "$nodes.more.output#/result", "four")],
            {DamageKind.WRONG_VALUE: 1, DamageKind.WRONG_TYPE: 1},
        ),
    ],
    ids=["none", "missing", "extra", "tool", "value", "dangling", "order", "type"],
)
def test_faults_are_counted_against_the_reference(nodes: list[Any], counted: dict[DamageKind, int]):
    assert dict(faults_against(parse_workflow(workflow(*nodes)), parse_workflow(REFERENCE), TOOLS)) == counted


def test_a_literal_in_place_of_an_input_is_no_fault():
    nodes = [node("twice", "multiply", 4, 2), *REFERENCE["nodes"][1:]]
    assert not faults_against(parse_workflow(workflow(*nodes)), parse_workflow(REFERENCE), TOOLS)


def test_the_mix_is_of_all_plans_and_its_mean_of_those_with_faults():
    reference = parse_workflow(REFERENCE)
    short = parse_workflow(workflow(REFERENCE["nodes"][0]))
    counts, mean = measured_mix([(reference, reference, TOOLS), (short, reference, TOOLS)])
    assert counts[DamageKind.MISSING_STEP] == 2
    assert sum(counts.values()) == 2
    assert mean == 2.0


def task() -> BenchTask:
    return BenchTask.model_validate(
        {
            "id": "sums",
            "task": "Double 4, add 10 and divide by 4.",
            "servers": ["sums"],
            "inputs": {"n": 4},
            "workflow": REFERENCE,
            "assertions": "output.total == `4.5`",
        }
    )


def test_the_simulator_is_seeded_and_draws_only_what_was_counted():
    mix = {DamageKind.DANGLING_REFERENCE: 3, DamageKind.WRONG_TOOL: 1}
    drawn = [simulate(task(), TOOLS, "middle", mix, seed) for seed in range(6)]
    again = [simulate(task(), TOOLS, "middle", mix, seed) for seed in range(6)]
    assert drawn == again
    made = [one for one in drawn if one is not None]
    assert made
    assert all(set(one.kinds) == set(mix) and len(one.kinds) == STRENGTHS["middle"] for one in made)
    assert len({str(one.workflow) for one in made}) > 1


def request(text: str) -> Request:
    return Request((Message("user", text),))


async def test_edits_are_found_by_what_was_asked_whatever_the_order(tmp_path: Path):
    path = tmp_path / "tape.jsonl"
    live = ScriptedBackend(["one", "two", "three"])
    recording = EditorTape(new_tape(path, ABOUT), "edits", "free/a", live, {"${FIXTURES}": "/tmp/x"})
    for text in ("first /tmp/x", "second", "first /tmp/x"):
        await recording.complete(request(text))
    replay = EditorTape(read_tape(path), "edits", "free/a", None, {"${FIXTURES}": "/tmp/y"})
    told = [(await replay.complete(request(t))).text for t in ("second", "first /tmp/y", "first /tmp/y")]
    assert told == ["two", "one", "three"]
    with pytest.raises(NotRecorded):
        await replay.complete(request("second"))
    assert replay.missed == 1


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('Thought: go\nAction: add\nAction Input: {"a": 1}\nObservation: x', Action("add", {"a": 1})),
        ('Action: `add`\nAction Input: {"a": {"b": 2}} and more', Action("add", {"a": {"b": 2}})),
        ('Thought: done\nFinish: {"total": 4.5}', Action(None, {"total": 4.5})),
        ("Action: add", None),
        ("Finish: 4.5", None),
        ('Thought: x\nObservation: made up\nFinish: {"total": 1}', None),
    ],
)
def test_a_react_answer_is_read_in_two_forms(text: str, action: Action | None):
    assert read_action(text) == action


def outcome(condition: str, source: str, name: str, **more: Any) -> PlanOutcome:
    return PlanOutcome.model_validate(
        {
            "task": name,
            "part": "search",
            "source": source,
            "condition": condition,
            "simulated": source.startswith("simulated"),
            "readable": True,
            **more,
        }
    )


OUTCOMES = [
    outcome("zero-shot", "free", "a", static_ok=True, calls=2, plan_tokens=100),
    outcome("zero-shot", "free", "b", verified=True, right=True, part="validation", plan_tokens=100),
    outcome("deterministic ladder", "free", "a", faults=("check_failed: no",), calls=9),
    outcome("deterministic ladder", "free", "b", verified=True, right=False, calls=1),
    outcome("population", "free", "a"),
    outcome("population", "free", "b", verified=True),
    outcome("greedy", "free", "a", verified=True),
    outcome("greedy", "free", "b", verified=True),
    outcome("population, no diversity", "free", "a", verified=True),
    outcome("ReAct with the model", "ReAct", "a", search_tokens=900),
    outcome("zero-shot", "simulated, mild", "c"),
    outcome("deterministic ladder", "simulated, mild", "c", verified=True),
]


def test_rows_are_compared_only_with_rows_of_the_same_plans():
    groups = {group.name: {row.condition: row for row in group.rows} for group in groups_of(OUTCOMES)}
    assert set(groups) == {"all", "part", "simulated, mild"}
    assert {row.plans for row in groups["all"].values()} == {2}
    assert {row.plans for row in groups["part"].values()} == {1}
    assert "ReAct with the model" in groups["part"]
    zero = groups["all"]["zero-shot"]
    assert (zero.static_ok, zero.verified, zero.best, zero.valid_best) == (1, 1, (0, 1), (1, 1))
    assert (zero.calls_per_solved, zero.tokens_per_solved) == (2.0, 200.0)
    ladder = groups["all"]["deterministic ladder"]
    assert (ladder.right, ladder.judged) == (0, 1)


def test_the_table_says_what_it_is_and_what_does_not_pay():
    report = EvolutionReport(
        quick=True,
        seed=7,
        tasks=3,
        tasks_with_plans=2,
        parts={"search": 2, "validation": 1},
        sizes={2: 3},
        mapped=1,
        servers=("sums",),
        distractors=10,
        budget={"seconds": 3.0},
        about=ABOUT,
        mix=None,
        versions={"skillbank": "0"},
        notes=("something was left out",),
        outcomes=tuple(OUTCOMES),
        groups=groups_of(OUTCOMES),
    )
    table = render_evolution_report(report)
    assert "population against greedy: fewer verified, 1 against 2 of 2" in table
    assert "50 % by the deterministic ladder, missed" in table
    assert "| simulated, mild damage to references | plans |" in table
    assert "| 3 % | 17–24 % |" in table
    assert "something was left out" in table
    assert "quick size" in table
    assert "| check_failed | 1 | a |" in table


def test_a_folder_that_is_no_checkout_of_mcp_bench_is_refused_by_its_file(tmp_path: Path):
    with pytest.raises(BenchError, match="mcpbench_tasks_single_runner_format"):
        mcp_bench_tasks(tmp_path)


def test_only_tasks_whose_servers_need_no_network_are_taken(tmp_path: Path):
    def group(*servers: str) -> dict[str, Any]:
        name = servers[0].lower().replace(" ", "_")
        return {
            "server_name": "+".join(servers),
            "servers": list(servers),
            "tasks": [{"task_id": f"{name}_{len(servers)}", "task_description": "Do it."}],
        }

    folder = tmp_path / "tasks"
    folder.mkdir()
    single = [group("Math MCP"), group("Weather Data")]
    double = [group("Unit Converter", "Math MCP"), group("Unit Converter", "Wikipedia")]
    for kind, groups in (("single", single), ("multi_2server", double), ("multi_3server", [])):
        path = folder / f"mcpbench_tasks_{kind}_runner_format.json"
        path.write_text(json.dumps({"server_tasks": groups}))
    tasks = mcp_bench_tasks(tmp_path)
    assert [(task.id, task.servers) for task in tasks] == [
        ("math_mcp_1", ("mb_math",)),
        ("unit_converter_2", ("mb_units", "mb_math")),
    ]


@pytest.mark.live
async def test_recorded_plans_are_repaired_on_the_real_servers_under_every_kind_of_condition(tmp_path: Path):
    recorded = recorded_tapes()
    kept = {place: a for place, a in recorded.answers.items() if place[1] in ("cubed_mean", "seats_left")}
    options = replace(
        quick_evolution_options(Tape(recorded.about, None, kept, recorded.counts)),
        recorded_tasks=None,
        simulated_tasks=1,
        keep=tmp_path / "kept.jsonl",
    )
    report = await run_evolution_bench(options, open_bank)
    groups = {group.name: {row.condition: row for row in group.rows} for group in report.groups}
    assert groups["constrained"]["zero-shot"].plans == 2
    assert groups["all"]["deterministic ladder"].verified >= groups["all"]["zero-shot"].verified >= 1
    assert "heuristic floor" in groups
    assert report.mix is not None
    assert any(name.startswith("simulated") for name in groups)
    again = await run_evolution_bench(options, open_bank)
    assert again.outcomes == report.outcomes
    assert "Q4_K_M" in render_evolution_report(again)
