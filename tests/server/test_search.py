"""Whole searches over scripted servers: what is repaired, at what price, and what never happens."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import JsonValue

from catalog.effects import Effect, EffectTable, Reset
from catalog.testing import ScriptedServer, ScriptedTool, Vanish
from catalog.tools import ToolId
from server.evolution.candidate import Candidate, Record
from server.evolution.driver import Progress, SearchResult
from server.evolution.tidy import tidied
from server.requests import Budget
from skills_store.workflow.edits import Edit, EditParameter, InsertNode, SwapTool, apply_edit, render_edit
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Node, Workflow
from tests.worlds import (
    SUMS,
    TEXT,
    UNITS,
    Arguments,
    Scene,
    node,
    scene,
    tables,
    takes,
    weather_plan,
    weather_servers,
    workflow,
)

pytestmark = pytest.mark.anyio

TASK = "Tell the current temperature in Oslo in fahrenheit"
OSLO = {"city": "Oslo"}
RIGHT, NEVER = "output.fahrenheit == `41`", "output.fahrenheit == `-1`"
FAHRENHEIT = {"value": "$nodes.now.output#/temp_c", "from_unit": "celsius", "to_unit": "fahrenheit"}
ALLOWED = EffectTable(
    {"tables": {"count_rows": Effect.READ, "*": Effect.WRITE}, "sums": {"*": Effect.PURE}},
    allow={"tables": ("*",)},
)


def shown(result: SearchResult) -> list[str]:
    return [render_edit(edit) for edit in result.best.candidate.edits]


def lineage(result: SearchResult) -> list[tuple[str, str | None, str]]:
    return [(r.candidate.id, r.candidate.parent, r.evaluation.status) for r in result.records]


def with_more(planned: Workflow, *nodes: dict[str, Any]) -> Workflow:
    more = workflow(*nodes, outputs={"o": f"$nodes.{nodes[-1]['id']}.output"})
    return planned.model_copy(update={"nodes": (*planned.nodes, *more.nodes)})


def rows_plan(*, table: str = "t", **outputs: str) -> Workflow:
    """Return a plan that creates, inserts and counts, in order."""
    return workflow(
        node("make", "tables/create_table", {"table": table}),
        node("ins", "tables/insert_row", {"table": table, "value": 1}, after=["make"]),
        node("n", "tables/count_rows", {"table": table}, after=["ins"]),
        outputs=outputs or {"count": "$nodes.n.output#/count"},
    )


class TestRepairs:
    @pytest.mark.parametrize(
        ("broken", "edits"),
        [
            pytest.param(
                weather_plan(now={"town": "$inputs.city"}),
                ["now: rename town → city = $inputs.city"],
                id="misnamed argument",
            ),
            pytest.param(
                weather_plan(now={"city": "$inputs.place"}), ["now: city = $inputs.city"], id="input"
            ),
            pytest.param(
                weather_plan(conv={**FAHRENHEIT, "to_unit": "farenheit"}),
                ['conv: to_unit = "fahrenheit"'],
                id="enum",
            ),
            pytest.param(
                weather_plan(conv={**FAHRENHEIT, "value": "$nodes.now.output#/temperature"}),
                ["conv: value = $nodes.now.output#/temp_c"],
                id="dangling pointer",
            ),
            pytest.param(
                weather_plan(conv={**FAHRENHEIT, "value": "$now.temp_c"}),
                ["conv: value = $nodes.now.output#/temp_c"],
                id="another dialect",
            ),
            pytest.param(
                weather_plan(conv={**FAHRENHEIT, "value": "$nodes.nov.output#/temp_c"}),
                ["conv: value = $nodes.now.output#/temp_c"],
                id="unknown node",
            ),
            pytest.param(
                weather_plan(output="$nodes.conv.output#/result"),
                ["outputs: fahrenheit = $nodes.conv.output#/converted_value"],
                id="dangling output",
            ),
            pytest.param(
                weather_plan(conv={**FAHRENHEIT, "from_unit": "fahrenheit", "to_unit": "celsius"}),
                ['conv: from_unit = "celsius"', 'conv: to_unit = "fahrenheit"'],
                id="swapped values",
            ),
            pytest.param(
                with_more(weather_plan(), node("idle", "weather/current", {"city": "Nowhere"})),
                ["remove idle"],
                id="needless step",
            ),
            pytest.param(
                weather_plan(
                    now={"town": "$inputs.city"}, conv={**FAHRENHEIT, "value": "$nodes.now.output#/t"}
                ),
                ["now: rename town → city = $inputs.city", "conv: value = $nodes.now.output#/temp_c"],
                id="two faults",
            ),
        ],
    )
    async def test_a_fault_is_mended_by_its_edit_and_nothing_else(self, broken: Workflow, edits: list[str]):
        async with scene(weather_servers(), RIGHT, plan=broken, task=TASK, inputs=OSLO) as it:
            result = await it.repair(broken)
        assert result.best.evaluation.status == "verified"
        assert result.best.evaluation.outputs["conv"] == {"converted_value": 41.0}
        assert sorted(shown(result)) == sorted(edits)
        assert result.stopped is None

    async def test_three_faults_at_once_are_mended(self):
        broken = workflow(
            node("conv", "units/temperature_convert", {**FAHRENHEIT, "to_unit": "farenheit"}),
            outputs={"fahrenheit": "$nodes.conv.output#/converted_value"},
            inputs=("city",),
        )
        async with scene(weather_servers(), RIGHT, plan=broken, task=TASK, inputs=OSLO) as it:
            result = await it.repair(broken)
        assert result.best.evaluation.status == "verified"
        assert [(n.id, str(n.tool)) for n in result.best.candidate.workflow.nodes] == [
            ("now", "weather/current"),
            ("conv", "units/convert_temperature"),
        ]

    async def test_a_lost_order_is_restored_in_processes_of_the_candidates_own(self):
        broken = workflow(
            node("n", "tables/count_rows", {"table": "t"}),
            node("ins", "tables/insert_row", {"table": "t", "value": 1}),
            node("make", "tables/create_table", {"table": "t"}),
            outputs={"count": "$nodes.n.output#/count"},
        )
        effects = EffectTable(
            {"tables": {"count_rows": Effect.READ, "*": Effect.WRITE}}, {"tables": Reset.PROCESS}
        )
        servers = {"tables": ScriptedServer(tables)}
        async with scene(servers, "output.count == `1`", plan=broken, effects=effects) as it:
            result = await it.repair(broken)
        assert result.best.evaluation.status == "verified"
        assert {n.id: n.after for n in result.best.candidate.workflow.nodes} == {
            "make": (),
            "ins": ("make",),
            "n": ("ins",),
        }
        assert result.best.evaluation.outputs["n"] == {"count": 1}, "no row of another candidate"

    async def test_the_best_so_far_comes_back_when_nothing_verifies(self):
        broken = weather_plan(now={"town": "$inputs.city"})
        async with scene(weather_servers(), NEVER, plan=broken, task=TASK, inputs=OSLO) as it:
            result = await it.repair(broken, Budget(candidates=40))
        assert result.base.evaluation.status == "static_faults"
        assert result.best.evaluation.status == "executed"
        assert shown(result) == ["now: rename town → city = $inputs.city"]
        assert [fault.kind for fault in result.best.evaluation.faults] == ["check_failed"]
        assert result.best == max(
            result.records, key=lambda r: (r.evaluation.fitness, -r.candidate.cost, -result.records.index(r))
        )


class TestBudgets:
    BROKEN = weather_plan(now={"town": "$inputs.city"})

    @pytest.mark.parametrize("candidates", [0, 1, 2, 7, 20])
    async def test_no_more_candidates_than_allowed_are_evaluated(self, candidates: int):
        async with scene(weather_servers(), NEVER, plan=self.BROKEN, task=TASK, inputs=OSLO) as it:
            result = await it.repair(self.BROKEN, Budget(candidates=candidates))
        assert len(result.records) == max(1, candidates), "the original is always evaluated"
        assert result.stopped == "candidates"

    @pytest.mark.parametrize("calls", [0, 1, 5, 9])
    async def test_no_call_is_made_past_the_budget(self, calls: int):
        servers = weather_servers()
        async with scene(servers, NEVER, plan=self.BROKEN, task=TASK, inputs=OSLO, memoise=False) as it:
            result = await it.repair(self.BROKEN, Budget(calls=calls))
        spent = [record.evaluation.calls for record in result.records]
        assert result.stopped == "calls"
        assert sum(spent) == result.calls == sum(server.log.count() for server in servers.values())
        assert result.calls == calls

    async def test_the_end_of_the_time_ends_calls_on_their_way_and_keeps_the_best(self):
        async def never(_: Arguments) -> JsonValue:
            await anyio.sleep_forever()

        current = ScriptedTool("current", never, takes(city=TEXT))
        servers = {"weather": ScriptedServer([current]), "units": ScriptedServer(UNITS)}
        async with scene(servers, RIGHT, plan=self.BROKEN, task=TASK, inputs=OSLO) as it:
            result = await it.repair(self.BROKEN, Budget(seconds=0.3))
            await servers["weather"].log.wait_for_cancelled("current")
        assert result.stopped == "seconds"
        assert result.best == result.base
        assert all(call.cancelled for call in servers["weather"].log.calls)

    async def test_a_time_too_short_for_the_original_says_so(self):
        async with scene(weather_servers(), RIGHT, plan=self.BROKEN, inputs=OSLO) as it:
            with pytest.raises(TimeoutError, match="before the original could be evaluated"):
                await it.repair(self.BROKEN, Budget(seconds=0))

    async def test_tidying_stays_within_the_budget(self):
        extra = [node(f"x{i}", "weather/current", {"city": "$inputs.city"}) for i in range(8)]
        broken = with_more(self.BROKEN, *extra)
        async with scene(weather_servers(), RIGHT, plan=broken, task=TASK, inputs=OSLO, memoise=False) as it:
            result = await it.repair(broken, Budget(calls=45), width=1)
        assert result.best.evaluation.status == "verified"
        assert result.calls <= 45


class TestSecondThoughts:
    async def test_an_answer_that_no_longer_depends_on_an_input_is_not_as_fit(self):
        planned = weather_plan()
        constant = planned.replacing(planned.nodes[0].model_copy(update={"arguments": {"city": "Oslo"}}))
        async with scene(weather_servers(), RIGHT, plan=planned, task=TASK, inputs=OSLO) as it:
            whole = await it.evaluator.evaluate(Candidate("whole", planned))
            lucky = await it.evaluator.evaluate(Candidate("lucky", constant, parent="whole"))
        assert (whole.status, lucky.status) == ("verified", "verified")
        assert (whole.fitness.keeps_inputs, lucky.fitness.keeps_inputs) == (True, False)
        assert whole.fitness > lucky.fitness


class TestStopping:
    async def test_a_workflow_that_is_right_is_run_once_and_left_alone(self):
        planned = with_more(
            weather_plan(now={"city": "Oslo"}), node("idle", "weather/current", {"city": "Rome"})
        )
        servers = weather_servers()
        async with scene(servers, RIGHT, plan=planned, task=TASK, inputs=OSLO) as it:
            result = await it.repair(planned)
        assert len(result.records) == 1
        assert result.best.candidate.workflow == planned
        assert result.calls == sum(server.log.count() for server in servers.values()) == 3

    async def test_nothing_is_evaluated_after_success_but_tidier_forms_of_it(self):
        broken = weather_plan(now={"town": "$inputs.city"}, conv={**FAHRENHEIT, "to_unit": "farenheit"})
        async with scene(weather_servers(), RIGHT, plan=broken, task=TASK, inputs=OSLO) as it:
            result = await it.repair(broken, width=1)
        first = next(i for i, r in enumerate(result.records) if r.evaluation.status == "verified")
        found = result.records[first].candidate
        for record in result.records[first + 1 :]:
            assert all(edit in found.edits for edit in record.candidate.edits)

    async def test_faults_of_the_world_alone_end_the_search(self):
        servers = {
            "weather": ScriptedServer([ScriptedTool("current", [Vanish()], takes(city=TEXT))]),
            "units": ScriptedServer(UNITS),
        }
        async with scene(servers, RIGHT, plan=weather_plan(), task=TASK, inputs=OSLO) as it:
            result = await it.repair(weather_plan())
        assert [fault.evidence for fault in result.best.evaluation.faults] == ["world"]
        assert len(result.records) == 1
        assert result.stopped is None

    async def test_a_call_that_nobody_allows_ends_the_search(self):
        effects = EffectTable(ALLOWED.effects)
        servers = {"tables": ScriptedServer(tables)}
        async with scene(servers, "output.count == `1`", plan=rows_plan(), effects=effects) as it:
            result = await it.repair(rows_plan())
        assert result.best.evaluation.verdict is not None
        assert result.best.evaluation.verdict.status == "needs_approval"
        assert len(result.records) == 1
        assert servers["tables"].log.count() == 0

    async def test_cancelling_a_search_leaves_nothing_running(self):
        async def never(_: Arguments) -> JsonValue:
            await anyio.sleep_forever()

        broken = weather_plan(now={"town": "$inputs.city"})
        servers = {
            "weather": ScriptedServer([ScriptedTool("current", never, takes(city=TEXT))]),
            "units": ScriptedServer(UNITS),
        }
        log = servers["weather"].log
        async with scene(servers, RIGHT, plan=broken, task=TASK, inputs=OSLO) as it:
            async with anyio.create_task_group() as group:
                group.start_soon(it.repair, broken)
                await log.wait_for("current")
                group.cancel_scope.cancel()
            await log.wait_for_cancelled("current", log.count("current"))
        assert all(call.cancelled for call in log.calls)


class TestEffects:
    async def test_a_write_is_really_called_at_most_once_over_hundreds_of_candidates(self):
        planned = with_more(rows_plan(), node("sum", "sums/add", {"a": "$nodes.n.output#/count", "b": 2}))
        planned = planned.model_copy(update={"outputs": {"total": "$nodes.sum.output#/result"}})
        servers = {"tables": ScriptedServer(tables()), "sums": ScriptedServer(SUMS)}
        async with scene(
            servers, "output.total == `12345.678`", plan=planned, task="Add 2 to the rows", effects=ALLOWED
        ) as it:
            result = await it.repair(planned, Budget(candidates=300, calls=3000))
        assert len(result.records) == 300
        assert servers["tables"].log.count("create_table") == 1
        assert servers["tables"].log.count("insert_row") == 1

    async def test_a_plan_that_drops_a_call_made_for_good_is_never_verified(self):
        planned = rows_plan(count="$nodes.n.output#/count")
        counting = ToolId("tables", "count_rows")
        dropping = SwapTool(node="make", tool=counting, arguments={"table": "t"})
        servers = {"tables": ScriptedServer(tables())}
        async with scene(servers, "output.count == `1`", plan=planned, effects=ALLOWED) as it:
            whole = await it.evaluator.evaluate(Candidate("whole", planned))
            without = apply_edit(planned, dropping)
            lacking = await it.evaluator.evaluate(Candidate("without", without, parent="whole"))
        assert whole.status == "verified"
        assert lacking.status != "verified"
        assert "cannot be undone" in lacking.faults[0].message

    async def test_what_is_not_free_waits_until_the_static_faults_are_mended(self):
        planned = rows_plan(count="$nodes.n.output#/count", gone="$nodes.nn.output#/count")
        servers = {"tables": ScriptedServer(tables())}
        async with scene(servers, "output.gone == `1`", plan=planned, effects=ALLOWED) as it:
            result = await it.repair(planned)
        assert result.best.evaluation.status == "verified"
        assert result.base.evaluation.calls == 0
        made = Counter(tool for tool, _ in it.calls("tables"))
        assert (made["create_table"], made["insert_row"]) == (1, 1)

    async def test_free_calls_are_made_once_for_each_of_their_arguments(self):
        broken = weather_plan(now={"town": "$inputs.city"})
        servers = weather_servers()
        async with scene(servers, NEVER, plan=broken, task=TASK, inputs=OSLO) as it:
            result = await it.repair(broken, Budget(candidates=120, calls=3000))
            made = [(s, tool, repr(sorted(a.items()))) for s in servers for tool, a in it.calls(s)]
        assert len(made) == len(set(made)) == result.calls
        assert sum(len(r.candidate.workflow.nodes) for r in result.records) > 4 * result.calls

    async def test_no_candidate_is_evaluated_twice(self):
        broken = weather_plan(now={"town": "Oslo"}, conv={**FAHRENHEIT, "to_unit": "farenheit"})
        async with scene(weather_servers(), RIGHT, plan=broken, task=TASK, inputs=OSLO) as it:
            evaluated = watched(it)
            result = await it.repair(broken)
        assert result.best.evaluation.status == "verified"
        assert len(evaluated) == len(set(evaluated)) == len(result.records)

    async def test_each_candidate_counts_its_own_calls(self):
        broken = weather_plan(conv={**FAHRENHEIT, "from_unit": "Celcius", "to_unit": "farenheit"})
        async with scene(weather_servers(), NEVER, plan=broken, task=TASK, inputs=OSLO, memoise=False) as it:
            result = await it.repair(broken, Budget(candidates=30))
        assert sum(record.evaluation.calls for record in result.records) == result.calls


def watched(it: Scene) -> list[str]:
    """Return a list that will hold the id of each candidate that is really evaluated, in order."""
    evaluated: list[str] = []
    evaluate = it.evaluator.evaluate

    async def noting(candidate: Candidate) -> Any:
        evaluated.append(candidate.id)
        return await evaluate(candidate)

    it.evaluator.evaluate = noting
    return evaluated


class TestDeterminism:
    def turned(self, tools: Sequence[ScriptedTool], turns: int) -> ScriptedServer:
        """Return a server that takes so many turns of the event loop more the larger its first number is."""

        def slower(tool: ScriptedTool) -> ScriptedTool:
            assert callable(tool.respond)
            respond = tool.respond

            async def later(arguments: Arguments) -> Any:
                numbers = [abs(int(v)) % 7 for v in arguments.values() if isinstance(v, int | float)]
                for _ in range(10 + turns * sum(numbers)):
                    await anyio.lowlevel.checkpoint()
                return respond(arguments)

            return ScriptedTool(tool.name, later, tool.input_schema, tool.output_schema, tool.description)

        return ScriptedServer([slower(tool) for tool in tools])

    @pytest.mark.parametrize("assertion", ["output.total == `43`", "output.total == `-1`"])
    async def test_the_same_base_gives_the_same_lineage_whatever_answer_comes_first(self, assertion: str):
        broken = workflow(
            node("sum", "sums/add", {"a": "$inputs.apples", "b": 7}),
            node("all", "sums/multiply", {"a": "$nodes.summ.output#/result", "b": "$inputs.price"}),
            outputs={"total": "$nodes.all.output#/result"},
            inputs=("apples", "pears", "price"),
        )
        found: list[list[tuple[str, str | None, str]]] = []
        for turns in (0, 5, -1):
            servers = {"sums": self.turned(SUMS, turns)}
            async with scene(
                servers,
                assertion,
                plan=broken,
                task="Add apples and pears, multiply by the price, add 3",
                inputs={"apples": 3, "pears": 5, "price": 5},
            ) as it:
                found.append(lineage(await it.repair(broken, Budget(candidates=30))))
        assert found[0] == found[1] == found[2]

    def test_the_lineage_does_not_depend_on_how_strings_are_hashed(self):
        script = (
            "import anyio\n"
            "from tests.worlds import *\n"
            "async def main():\n"
            "    broken = weather_plan(now={'town': 'Oslo'})\n"
            "    async with scene(weather_servers(), 'output.fahrenheit == `-1`', plan=broken,\n"
            "                     task='Tell the current temperature', inputs={'city': 'Oslo'}) as it:\n"
            "        result = await it.repair(broken, Budget(candidates=25))\n"
            "    print([r.candidate.id for r in result.records])\n"
            "    print([e.model_dump_json() for r in result.records for e in r.candidate.edits])\n"
            "anyio.run(main)\n"
        )
        root = Path(__file__).parents[2]
        said = {
            subprocess.run(
                [sys.executable, "-c", script],
                cwd=root,
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
                timeout=60,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(said) == 1
        assert said.pop().count(b"sha256:") == 25


class TestTidying:
    async def tidy(self, it: Scene, base: Workflow, *edits: Edit) -> list[Record]:
        """Return what tidying a verified candidate tried, that candidate first."""
        planned = base
        for edit in edits:
            planned = apply_edit(planned, edit)
        candidate = Candidate(content_hash(planned), planned, edits, edits, content_hash(base), 1.0, 1)
        best = Record(candidate, await it.evaluator.evaluate(candidate))
        assert best.evaluation.status == "verified"
        known = {content_hash(base), candidate.id}
        return [best, *[record async for record in tidied(best, base, it.evaluator, known)]]

    @staticmethod
    def last_verified(records: list[Record]) -> Record:
        return [record for record in records if record.evaluation.status == "verified"][-1]

    async def test_an_edit_that_is_not_needed_is_dropped(self):
        base = weather_plan(now={"town": "$inputs.city"})
        needed = EditParameter(node="now", pointer="/city", value="$inputs.city", renamed_from="/town")
        idle = InsertNode(
            planned=Node(id="idle", tool=base.nodes[0].tool, arguments={"city": "Rome"}), position=0
        )
        async with scene(weather_servers(), RIGHT, inputs=OSLO) as it:
            records = await self.tidy(it, base, idle, needed)
        assert self.last_verified(records).candidate.edits == (needed,)
        assert records[0].candidate.cost > self.last_verified(records).candidate.cost

    async def test_a_chain_of_free_nodes_that_nobody_reads_is_removed_to_its_beginning(self):
        base = with_more(
            weather_plan(now={"town": "$inputs.city"}),
            node("x", "sums/add", {"a": 1, "b": 2}),
            node("y", "sums/add", {"a": "$nodes.x.output#/result", "b": 2}),
            node("z", "sums/add", {"a": "$nodes.y.output#/result", "b": 2}),
        )
        rename = EditParameter(node="now", pointer="/city", value="$inputs.city", renamed_from="/town")
        servers = {**weather_servers(), "sums": ScriptedServer(SUMS)}
        async with scene(servers, RIGHT, inputs=OSLO) as it:
            records = await self.tidy(it, base, rename)
        assert [n.id for n in self.last_verified(records).candidate.workflow.nodes] == ["now", "conv"]

    async def test_a_literal_that_is_an_input_is_lifted(self):
        base = weather_plan(now={"town": "Oslo"})
        rename = EditParameter(node="now", pointer="/city", value="Oslo", renamed_from="/town")
        async with scene(weather_servers(), RIGHT, inputs=OSLO) as it:
            records = await self.tidy(it, base, rename)
        assert self.last_verified(records).candidate.workflow.nodes[0].arguments == {"city": "$inputs.city"}

    async def test_a_number_that_the_task_does_not_say_is_not_taken_for_an_input(self):
        base = workflow(
            node("sum", "sums/add", {"a": "$inputs.x", "c": 2}),
            outputs={"o": "$nodes.sum.output#/result"},
            inputs=("x", "years"),
        )
        rename = EditParameter(node="sum", pointer="/b", value=2, renamed_from="/c")
        inputs = {"x": 1, "years": 2}
        async with scene({"sums": ScriptedServer(SUMS)}, "output.o == `3`", inputs=inputs) as it:
            records = await self.tidy(it, base, rename)
        assert len(records) == 1

    async def test_a_write_that_nobody_reads_stays(self):
        base = with_more(
            rows_plan(), node("sum", "sums/add", {"a": 1, "c": 2}), node("idle", "sums/add", {"a": 1, "b": 2})
        ).model_copy(update={"outputs": {"o": "$nodes.sum.output#/result"}})
        rename = EditParameter(node="sum", pointer="/b", value=2, renamed_from="/c")
        servers = {"tables": ScriptedServer(tables()), "sums": ScriptedServer(SUMS)}
        async with scene(servers, "output.o == `3`", plan=base, effects=ALLOWED) as it:
            records = await self.tidy(it, base, rename)
        kept = [n.id for n in self.last_verified(records).candidate.workflow.nodes]
        assert "idle" not in kept
        assert {"make", "ins", "sum"} <= set(kept)

    async def test_what_was_tried_in_vain_is_told_too_and_known_candidates_are_not_tried(self):
        base = weather_plan(now={"town": "$inputs.city"}, conv={**FAHRENHEIT, "to_unit": "celsius"})
        edits = (
            EditParameter(node="now", pointer="/city", value="$inputs.city", renamed_from="/town"),
            EditParameter(node="conv", pointer="/to_unit", value="fahrenheit"),
        )
        async with scene(weather_servers(), RIGHT, inputs=OSLO) as it:
            records = await self.tidy(it, base, *edits)
        tried = [(record.candidate.edits, record.evaluation.status) for record in records[1:]]
        assert tried == [(edits[:1], "executed"), (edits[1:], "static_faults")]


async def test_progress_is_told_for_each_candidate_of_the_search():
    heard: list[Progress] = []
    broken = weather_plan(now={"town": "$inputs.city"})
    async with scene(weather_servers(), NEVER, plan=broken, task=TASK, inputs=OSLO) as it:
        result = await it.repair(broken, Budget(candidates=12), listener=heard.append)
    assert [progress.candidates for progress in heard] == list(range(1, 13))
    assert heard[0].trying == "the workflow as given"
    assert heard[-1].calls == result.calls
    assert all(0.0 <= progress.best_score <= 1.0 and progress.faults_left for progress in heard)


class TestEvaluation:
    async def evaluate(self, it: Scene, planned: Workflow) -> Any:
        return await it.evaluator.evaluate(Candidate(content_hash(planned), planned))

    async def test_sound_free_nodes_of_a_faulty_workflow_run_and_show_what_they_give(self):
        planned = weather_plan(conv={**FAHRENHEIT, "to_unit": "farenheit"})
        async with scene(weather_servers(), RIGHT, inputs=OSLO) as it:
            evaluation = await self.evaluate(it, planned)
        assert evaluation.status == "static_faults"
        assert evaluation.outputs == {"now": {"station": "north", "temp_c": 5.0}}
        assert [fault.kind for fault in evaluation.faults] == ["invalid_argument"]
        assert not evaluation.fitness.verified
        assert evaluation.fitness.executed == 0.5

    async def test_nodes_that_wait_for_each_other_are_not_run(self):
        planned = weather_plan()
        planned = planned.replacing(planned.nodes[0].model_copy(update={"after": ("conv",)}))
        servers = weather_servers()
        async with scene(servers, RIGHT, inputs=OSLO) as it:
            evaluation = await self.evaluate(it, planned)
        assert (evaluation.status, evaluation.trace, evaluation.calls) == ("static_faults", None, 0)
        assert [fault.kind for fault in evaluation.faults] == ["cycle"]
        assert sum(server.log.count() for server in servers.values()) == 0

    @pytest.mark.parametrize(
        ("city", "assertion", "status", "fitness"),
        [
            ("Oslo", RIGHT, "verified", (True, 1.0, 1.0, 1.0, 1.0)),
            ("Oslo", NEVER, "executed", (False, 0.0, 1.0, 1.0, 1.0)),
            ("Paris", RIGHT, "failed", (False, 0.0, 0.0, 0.0, 3 / 5)),
        ],
    )
    async def test_what_became_of_a_candidate(
        self, city: str, assertion: str, status: str, fitness: tuple[float, ...]
    ):
        async with scene(weather_servers(), assertion, inputs={"city": city}) as it:
            evaluation = await self.evaluate(it, weather_plan())
        found = evaluation.fitness
        assert evaluation.status == status
        assert (
            found.verified,
            found.checks_passed,
            found.outputs_produced,
            found.executed,
            found.rule_score,
        ) == pytest.approx(fitness)
        assert (evaluation.unmet == 0) == (status == "verified")

    async def test_deleting_what_fails_gains_nothing(self):
        failing = weather_plan()
        deleted = workflow(
            node("conv", "units/convert_temperature", {**FAHRENHEIT, "value": 1}),
            outputs={"fahrenheit": "$nodes.conv.output#/converted_value"},
            inputs=("city",),
        )
        async with scene(weather_servers(), RIGHT, inputs=OSLO) as it:
            right = await self.evaluate(it, failing)
            less = await self.evaluate(it, deleted)
        assert right.fitness > less.fitness
        assert less.status == "executed"
