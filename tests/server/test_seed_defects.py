"""Each defect of the public code of MCP-Bench, AgentEvolver and FlowEvo, and the tests that catch it here.

EvoFlux's have a file of their own, `test_evoflux_defects`. What has no counterpart here is said, with why.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]

_CAUGHT: dict[str, tuple[str, ...]] = {
    "MCP-Bench: answers of tools that keep state are cached": (
        "catalog/test_effects.py::test_an_answer_of_a_costly_tool_never_stands_in_for_a_call",
        "server/test_episode.py::test_a_replay_is_never_answered_from_memory",
    ),
    "MCP-Bench: the judge is not given how the steps depend on each other": (
        "server/test_judge.py::test_what_is_judged_stands_in_front_and_is_the_same_in_every_reading",
    ),
    "MCP-Bench: the number of tasks that a file states is wrong": (
        "server/bench/test_evolution_bench.py::test_only_tasks_whose_servers_need_no_network_are_taken",
    ),
    "MCP-Bench: another version of the SDK makes a tool's answers fail": (
        "server/test_evoflux_defects.py::test_11_structured_content_is_the_output_and_must_fit_its_schema",
    ),
    "MCP-Bench: no expected answers": (
        "server/bench/test_evolution_tasks.py::"
        "test_there_are_at_least_120_tasks_of_two_to_eight_steps_with_checks_and_held_out_inputs",
    ),
    "AgentEvolver: every step of a trajectory that cannot be read gets the sign of the outcome": (
        "server/test_attribution.py::test_a_failed_step_is_bad_and_one_that_was_not_reached_has_no_label",
        "server/test_attribution.py::test_better_labels_replace_and_agreement_counts_what_both_have",
    ),
    "FlowEvo: a skill without tests passes its replay": (
        "server/test_gathering.py::test_records_are_not_made_up_and_the_skill_waits_and_names_the_input",
    ),
    "FlowEvo: code is kept from harm by a list of names": (
        "server/sandbox/test_escapes.py::test_an_attempt_is_contained",
    ),
}
"""By defect: the tests. Counted rounds, a shared task object and rubrics that are not written down have no
counterpart: nothing here counts rounds, tasks are immutable, and the judge's rubric is a file."""


@cache
def _tests_of(path: Path) -> frozenset[str]:
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(
        node.name
        for node in found
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


@pytest.mark.parametrize(("defect", "tests"), _CAUGHT.items(), ids=_CAUGHT)
def test_the_tests_that_catch_a_defect_are_there(defect: str, tests: tuple[str, ...]) -> None:
    for named in tests:
        path, name = named.split("::")
        assert name in _tests_of(_TESTS / path), f"{defect}: {named} is gone: name what catches it now"
