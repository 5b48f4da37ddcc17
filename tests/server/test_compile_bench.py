"""The machinery of the compile benchmark: families, ground truth, comparison, baselines, spoilt skills."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from catalog.tools import ToolId
from server.bench.bad_candidates import Bench, spoil
from server.bench.compile_accuracy import bound_inputs, measure_family
from server.bench.compile_gate import GatePlan, measure_gate
from server.bench.compile_report import CompileBenchReport, FamilyReport, GateReport
from server.bench.compile_selection import measure_selection
from server.bench.compile_table import render_compile_report
from server.bench.exact_match import compile_by_equality
from server.bench.families import Family, compile_families
from server.bench.kept import Kept
from server.bench.placed import Role, compared, roles_of
from server.bench.sessions import alike, expected_outputs, make_session
from server.provisioning.errors import TasksRejected
from tests.server.conftest import METERS

FAMILY: dict[str, Any] = {
    "id": "trip_digest",
    "task": "Convert {length} miles to meters, add {more} and hash the text 'sum N' of it.",
    "kinds": ["template"],
    "steps": [
        {
            "tool": "units/convert_length",
            "arguments": {"value": {"given": "length"}, "from_unit": "miles", "to_unit": "meters"},
        },
        {"tool": "calculator/add", "arguments": {"a": {"from": 1, "read": "value"}, "b": {"given": "more"}}},
        {"tool": "hashes/sha256", "arguments": {"text": {"join": ["sum ", {"from": 2, "read": "result"}]}}},
    ],
    "instances": [
        {"length": 12.5, "more": 40.25},
        {"length": 7, "more": 133},
        {"length": 31.5, "more": 2.75},
    ],
}


def family(**changes: Any) -> Family:
    return Family.model_validate({**FAMILY, **changes})


async def answering(tool: ToolId, arguments: dict[str, Any]) -> Any:
    match tool.tool:
        case "convert_length":
            return {"value": arguments["value"] * METERS[arguments["from_unit"]], "unit": "meters"}
        case "add":
            return {"result": arguments["a"] + arguments["b"]}
        case _:
            return {"digest": hashlib.sha256(arguments["text"].encode()).hexdigest()}


@pytest.mark.anyio
async def test_the_calls_of_a_session_are_computed_from_earlier_answers():
    session = await make_session(family(), 0, answering)
    assert session.task == "Convert 12.5 miles to meters, add 40.25 and hash the text 'sum N' of it."
    assert [call.arguments for call in session.calls] == [
        {"value": 12.5, "from_unit": "miles", "to_unit": "meters"},
        {"a": 20116.8, "b": 40.25},
        {"text": "sum 20157.05"},
    ]
    assert expected_outputs(session) == session.calls[-1].output


@pytest.mark.anyio
async def test_ground_truth_says_for_each_place_which_value_and_which_call_it_is_from():
    session = await make_session(family(), 0, answering)
    truth = {
        (number, pointer): (set(leaf.given), set(leaf.calls))
        for number, call in enumerate(session.calls)
        for pointer, leaf in call.leaves.items()
    }
    assert truth == {
        (0, "/value"): ({"length"}, set()),
        (0, "/from_unit"): (set(), set()),
        (0, "/to_unit"): (set(), set()),
        (1, "/a"): (set(), {0}),
        (1, "/b"): ({"more"}, set()),
        (2, "/text"): (set(), {1}),
    }


@pytest.mark.anyio
async def test_a_repeated_step_is_called_for_each_item_and_read_as_a_list():
    each = family(
        task="Add the values {values} to 1 each, and hash them.",
        steps=[
            {
                "tool": "calculator/add",
                "arguments": {"a": {"item": True}, "b": 1},
                "each": {"given": "values"},
            },
            {"tool": "hashes/sha256", "arguments": {"text": "x", "all": {"all": 1, "read": "result"}}},
        ],
        instances=[{"values": [5, 6]}, {"values": [7]}, {"values": [1, 2, 3]}],
    )
    session = await make_session(each, 0, answering)
    last = session.calls[-1]
    assert [call.arguments["a"] for call in session.calls[:2]] == [5, 6]
    assert last.arguments["all"] == [6, 7]
    assert [set(last.leaves[f"/all/{at}"].calls) for at in (0, 1)] == [{0}, {1}]


def test_a_family_whose_instances_do_not_fit_its_words_is_refused():
    with pytest.raises(ValueError, match="instance 2 and the task differ in more"):
        family(instances=[FAMILY["instances"][0], {"length": 7}, FAMILY["instances"][2]])


@pytest.mark.anyio
async def test_reading_what_is_not_there_is_an_error_of_the_family():
    steps = [FAMILY["steps"][0], {"tool": "calculator/add", "arguments": {"a": {"from": 1, "read": "nope"}}}]
    with pytest.raises(TasksRejected, match="reads nothing"):
        await make_session(family(steps=steps), 0, answering)


def test_the_families_are_enough_and_over_enough_servers():
    families = compile_families("/fixtures")
    servers = {server for one in families for server in one.servers}
    assert len(families) * 3 >= 150
    assert len(servers) >= 10
    assert len({one.id for one in families}) == len(families)


@pytest.mark.anyio
async def test_equality_alone_links_equal_values_and_leaves_templates_as_they_are():
    session = await make_session(family(), 0, answering)
    workflow, inputs, recorded = compile_by_equality(session)
    found = compared(roles_of(workflow, recorded, session), session)
    assert workflow.nodes[1].arguments["a"] == "$nodes.call_0.output#/value"
    assert sorted(map(str, inputs.values())) == ["12.5", "40.25", "meters", "miles"]
    assert (found.inputs_exact, found.links_exact, found.under, found.said_constants) == (True, False, 1, 2)


@pytest.mark.anyio
async def test_one_input_for_two_meanings_is_not_exact():
    session = await make_session(family(), 0, answering)
    truth = {
        (number, pointer): Role(
            inputs=frozenset({"one"}) if leaf.given else frozenset(), calls=frozenset(leaf.calls)
        )
        for number, call in enumerate(session.calls)
        for pointer, leaf in call.leaves.items()
    }
    assert compared(truth, session).inputs_exact is False
    named = {place: Role(frozenset(session.calls[place[0]].leaves[place[1]].given), role.calls)
             for place, role in truth.items()}  # fmt: skip
    exact = compared(named, session)
    assert (exact.inputs_exact, exact.links_exact, exact.over, exact.under) == (True, True, 0, 0)


@pytest.mark.anyio
async def test_an_input_that_no_task_gives_cannot_be_bound():
    one, third = [await make_session(family(), number, answering) for number in (0, 2)]
    roles = {(0, "/value"): Role(frozenset({"miles"})), (1, "/a"): Role(frozenset({"asked"}))}
    assert bound_inputs({"miles": 12.5}, roles, one, third) == ({"miles": 31.5}, "")
    assert "no task gives the input asked" in bound_inputs({"asked": 20116.8}, roles, one, third)[1]


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ({"a": 1.0, "at": "now"}, {"a": 1, "at": "then"}, True),
        ({"a": 1.0}, {"a": 1.00001}, False),
        ({"a": True}, {"a": 1}, False),
        ([1, "x"], [1, "x", 2], False),
        ({"a": 1, "b": 2}, {"a": 1}, False),
    ],
)
def test_outputs_are_compared_to_nine_digits_without_what_is_volatile(one, two, same):
    assert alike(one, two, frozenset({"at"})) is same


@pytest.mark.anyio
async def test_a_family_is_compiled_from_one_run_and_from_two_and_is_right_on_the_third(open_desk):
    async with open_desk() as at:
        report = await measure_family(family(), at.bank, None)
    one, two, equality = report.attempts
    assert [attempt.way for attempt in report.attempts] == ["one run", "two runs", "equality alone"]
    for attempt in (one, two):
        assert (attempt.inputs_exact, attempt.links_exact, attempt.right) == (True, True, True)
        assert (attempt.over, attempt.under, attempt.wrong_links, attempt.places) == (0, 0, 0, 4)
    assert (equality.links_exact, equality.right) == (False, False)
    assert report.calls == 9
    assert report.skill is not None
    assert report.skill.state == "active"


@pytest.mark.anyio
async def test_spoilt_skills_do_not_become_active_and_are_kept_for_a_run_that_goes_on(open_desk, tmp_path):
    kept = tmp_path / "kept.jsonl"
    async with open_desk() as at:
        report = await measure_family(family(), at.bank, None)
        assert report.skill is not None
        gate = await measure_gate([report.skill], at.bank, GatePlan(12, 7), Kept(kept))
        calls = at.count()
        again = await measure_gate([report.skill], at.bank, GatePlan(12, 7), Kept(kept))
        assert (again, at.count()) == (gate, calls)
    assert {case.kind for case in gate.cases} >= {"constant result", "over-general"}
    assert gate.became_active == 0
    assert gate.unplaced == 12 - len(gate.cases)


@pytest.mark.anyio
async def test_a_spoilt_skill_differs_from_the_sound_one_and_says_how(open_desk):
    async with open_desk() as at:
        report = await measure_family(family(), at.bank, None)
        assert report.skill is not None
        bench = Bench(await at.context.snapshot(), at.context.config.effects)
        found = [
            bad
            for kind in ("constant result", "wrong link", "over-general")
            for bad in spoil(kind, report.skill, bench)
        ]
    assert all(bad.skill.content_hash != report.skill.content_hash for bad in found)
    assert len({(bad.kind, bad.detail) for bad in found}) == len(found)


@pytest.mark.anyio
async def test_selection_counts_the_right_skill_and_abstains_where_there_is_none(open_desk):
    strange = family(id="other", task="Paint {length} fences in {more} days.")
    async with open_desk() as at:
        report = await measure_family(family(), at.bank, None)
        assert report.skill is not None
        skills = {"trip_digest": report.skill, "other": report.skill}
        found = measure_selection([family(), strange], skills, await at.context.snapshot(), (10, 40), 3)
    for row in found.rows:
        assert (row.tasks, row.direct_right, row.direct_wrong, row.abstained) == (1, 1, 0, 0)
        assert (row.strange, row.strange_direct, row.found_in_five) == (1, 0, 1)


def test_the_tables_say_their_size_and_name_what_became_active():
    report = CompileBenchReport(
        quick=True,
        seed=7,
        versions={"skillbank": "1"},
        servers=("units",),
        traces=3,
        families=(
            FamilyReport.model_validate(
                {
                    "family": "f",
                    "half": "tuned",
                    "kinds": ["captured"],
                    "servers": ["units"],
                    "calls": 6,
                    "attempts": [
                        {
                            "way": "one run",
                            "compiled": True,
                            "state": "active",
                            "inputs_exact": True,
                            "links_exact": False,
                            "right": False,
                        },
                        {"way": "two runs", "compiled": False, "detail": "no"},
                    ],
                }
            ),
        ),
        tau=None,
        selection=None,
        gate=GateReport.model_validate(
            {
                "seed": 7,
                "unplaced": 1,
                "sound": 1,
                "cases": [
                    {"kind": "flaky", "skill": "f", "detail": "dice", "state": "active", "reason": "r"}
                ],
            }
        ),
        notes=("trace2mcp was left out",),
        seconds=1.0,
    )
    text = render_compile_report(report)
    assert "| one run, half tuned        | 1 | 1/1 | 0/1 | 0 | 0 | 0 | 0/1 | 1 active |" in text
    assert (
        "| two runs, half tuned       | 1 | 0/1 | 0/1 | 0 | 0 | 0 | 0/1 | not admitted, 1 refused |" in text
    )
    assert "a quick run; 3 traces of 1 families" in text
    assert "- ACTIVE: flaky: f: dice" in text
    assert "- trace2mcp was left out" in text
