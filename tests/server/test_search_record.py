"""The record of a search: what is in it, what survives a kill, and that going on repeats nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import JsonValue

from catalog.canonical import digest
from catalog.effects import Effect, EffectTable
from catalog.result import CallFailure, CallSuccess
from catalog.testing import ScriptedServer, ScriptedTool
from server.evolution.contrasts import contrasts
from server.evolution.errors import RecordExists, RecordMismatch, RecordUnreadable
from server.evolution.lines import SearchLine
from server.evolution.options import SearchOptions
from server.evolution.record import SearchFile, create_record, read_search, resume_record
from server.execution.recording import Recorder
from server.execution.spill import unredacted
from server.requests import Budget
from skills_store.workflow.edits import apply_edit
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Workflow
from tests.worlds import (
    FREE,
    NUMBER,
    TEXT,
    Arguments,
    Scene,
    gives,
    node,
    scene,
    takes,
    weather_plan,
    weather_servers,
    workflow,
)

pytestmark = pytest.mark.anyio

TASK, OSLO = "Tell the current temperature in Oslo in fahrenheit", {"city": "Oslo"}
RIGHT, NEVER = "output.fahrenheit == `41`", "output.fahrenheit == `-1`"
BROKEN = weather_plan(now={"town": "$inputs.city"})
OPTIONS = SearchOptions(strategy="population", seed=3, generations=60)
RECORDER = Recorder(unredacted)


def head(base: Workflow = BROKEN, **more: Any) -> SearchLine:
    fields: dict[str, Any] = {
        "task": TASK,
        "inputs": digest(OSLO),
        "checks": digest(NEVER),
        "seed": 3,
        **more,
    }
    return SearchLine(base=content_hash(base), workflow=base.to_json(), strategy="population", **fields)


@asynccontextmanager
async def recorded(
    path: Path,
    servers: Mapping[str, ScriptedServer],
    base: Workflow = BROKEN,
    assertion: str = NEVER,
    *,
    resume: bool = False,
    effects: EffectTable = FREE,
    recorder: Recorder = RECORDER,
) -> AsyncGenerator[tuple[Scene, SearchFile]]:
    """Open a scene whose search is written down, or taken up again."""
    async with scene(servers, assertion, plan=base, task=TASK, inputs=OSLO, effects=effects) as it:
        if resume:
            file, kept = resume_record(path, head(base), recorder)
            it.evaluator.recorded = kept.evaluations
            it.episode.restore(kept.ran)
        else:
            file = create_record(path, head(base), recorder)
        it.episode.keep_book(file)
        try:
            yield it, file
        finally:
            file.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()]


async def test_every_candidate_has_its_line_with_all_there_is_to_know(tmp_path: Path):
    path = tmp_path / "search.jsonl"
    async with recorded(path, weather_servers()) as (it, file):
        result = await it.repair(BROKEN, Budget(candidates=60), options=OPTIONS, journal=file)
    first, *rest = lines(path)
    candidates = [line for line in rest if line["kind"] == "candidate"]
    assert (first["kind"], first["base"]) == ("search", content_hash(BROKEN))
    assert [line["id"] for line in candidates] == [r.candidate.id for r in result.records]
    assert {line["status"] for line in candidates} >= {"static_faults", "executed"}
    for line, record in zip(candidates, result.records, strict=True):
        assert (line["static_ok"], line["executed_ok"], line["verified"]) == (
            record.evaluation.static_ok,
            record.evaluation.executed_ok,
            False,
        )
        assert (line["mode"], line["by"], line["generation"]) == (
            record.made.mode,
            record.made.by,
            record.made.generation,
        )
        assert line["parent"] == record.candidate.parent
        assert line["shape"] == shape_hash(record.candidate.workflow)
        assert (line["scored_by"], line["score"]) == ("rules", record.evaluation.score)
        assert bool(line["faults"]) == bool(record.evaluation.faults)
    assert {line["mode"] for line in candidates} >= {"base", "ladder", "explore"}
    assert all(0 <= line["intensity"] <= 1 and 0 <= line["growth"] <= 1 for line in candidates)


async def test_a_recorded_candidate_is_the_base_and_its_edits(tmp_path: Path):
    path = tmp_path / "search.jsonl"
    async with recorded(path, weather_servers()) as (it, file):
        result = await it.repair(BROKEN, Budget(candidates=50), options=OPTIONS, journal=file)
    kept = read_search(path)
    assert [r.candidate.workflow for r in kept.records] == [r.candidate.workflow for r in result.records]
    assert [r.evaluation.fitness for r in kept.records] == [r.evaluation.fitness for r in result.records]
    assert [r.made for r in kept.records] == [r.made for r in result.records]
    for record in kept.records:
        replayed = BROKEN
        for edit in record.candidate.edits:
            replayed = apply_edit(replayed, edit)
        assert replayed == record.candidate.workflow


@pytest.mark.parametrize("cut", [2, 30, 41, 70])
async def test_a_search_that_is_taken_up_ends_as_one_that_was_never_interrupted(tmp_path: Path, cut: int):
    whole, torn = tmp_path / "whole.jsonl", tmp_path / "torn.jsonl"
    async with recorded(whole, weather_servers()) as (it, file):
        expected = await it.repair(BROKEN, Budget(candidates=80), options=OPTIONS, journal=file)
    texts = whole.read_text().splitlines(keepends=True)
    torn.write_text("".join(texts[:cut]) + texts[cut][:37])
    servers = weather_servers()
    async with recorded(torn, servers, resume=True) as (it, file):
        before = len(read_search(torn).candidates)
        budget = Budget(candidates=80 - before)
        result = await it.repair(BROKEN, budget, options=OPTIONS, journal=file)
    assert result.replayed == before
    assert [r.candidate.id for r in result.records][:before] == [
        r.candidate.id for r in expected.records[:before]
    ]
    assert len(result.records) == 80
    ids = [line["id"] for line in lines(torn) if line["kind"] == "candidate"]
    assert len(ids) == len(set(ids)) == 80, "nothing is on record twice"
    if cut > 41:  # the ladder had made way: from there on all is drawn by the seed
        assert [r.candidate.id for r in result.records] == [r.candidate.id for r in expected.records]


async def test_going_on_with_a_search_that_found_it_evaluates_nothing(tmp_path: Path):
    path = tmp_path / "search.jsonl"
    async with recorded(path, weather_servers(), assertion=RIGHT) as (it, file):
        found = await it.repair(BROKEN, options=OPTIONS, journal=file)
    assert found.best.evaluation.status == "verified"
    servers = weather_servers()
    async with recorded(path, servers, assertion=RIGHT, resume=True) as (it, file):
        again = await it.repair(BROKEN, options=OPTIONS, journal=file)
    assert again.best.candidate.id == found.best.candidate.id
    assert (again.replayed, again.calls) == (len(again.records), 0)
    assert sum(server.log.count() for server in servers.values()) == 0
    example = contrasts(read_search(path).records)
    assert example is not None
    assert example.chosen.candidate.id == found.best.candidate.id


def paying(calls: list[Arguments], *, hangs: bool = False) -> dict[str, ScriptedServer]:
    async def pay(arguments: Arguments) -> JsonValue:
        calls.append(arguments)
        if hangs:
            await anyio.sleep_forever()
        return {"receipt": "r1"}

    def fee(arguments: Arguments) -> JsonValue:
        return {"fee": arguments["amount"] / 10}

    tools = [
        ScriptedTool("pay", pay, takes(amount=NUMBER), gives(receipt=TEXT), "Pay an amount"),
        ScriptedTool("fee", fee, takes(amount=NUMBER), gives(fee=NUMBER), "Tell the fee of an amount"),
    ]
    return {"s": ScriptedServer(tools)}


PAY = workflow(
    node("paid", "s/pay", {"amount": 5}),
    node("fee", "s/fee", {"amount": 5}),
    outputs={"receipt": "$nodes.paid.output#/receipt", "fee": "$nodes.fee.output#/fee"},
    inputs=("city",),
)
PAYING = EffectTable({"s": {"pay": Effect.WRITE, "fee": Effect.PURE}}, allow={"s": ("pay",)})


async def test_a_write_that_is_on_record_stands_in_for_the_call(tmp_path: Path):
    path, calls = tmp_path / "search.jsonl", list[Arguments]()
    never = "output.receipt == 'r2'"
    async with recorded(path, paying(calls), PAY, never, effects=PAYING) as (it, file):
        await it.repair(PAY, Budget(candidates=20), options=OPTIONS, journal=file)
    assert calls == [{"amount": 5}]
    ran = read_search(path).ran
    assert [(call.node, call.tool.tool, type(call.outcome)) for call in ran] == [("paid", "pay", CallSuccess)]
    head_line, *rest = path.read_text().splitlines(keepends=True)
    path.write_text(head_line + "".join(text for text in rest if '"kind":"call"' in text))
    async with recorded(path, paying(calls), PAY, never, resume=True, effects=PAYING) as (it, file):
        result = await it.repair(PAY, Budget(candidates=40), options=OPTIONS, journal=file)
    assert calls == [{"amount": 5}], "the base was evaluated anew and its write was not made again"
    assert result.base.evaluation.outputs["paid"] == {"receipt": "r1"}


async def test_a_write_that_was_on_its_way_when_the_process_was_killed_is_never_made_again(tmp_path: Path):
    path, calls = tmp_path / "search.jsonl", list[Arguments]()
    async with recorded(path, paying(calls, hangs=True), PAY, NEVER, effects=PAYING) as (it, file):
        with anyio.move_on_after(5):
            async with anyio.create_task_group() as group:

                async def searched() -> None:
                    await it.repair(PAY, Budget(seconds=30), options=OPTIONS, journal=file)

                group.start_soon(searched)
                while not calls:
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
    (call,) = [line for line in lines(path) if line["kind"] == "call"]
    assert (call["tool"]["tool"], call["outcome"]) == ("pay", None)
    (ran,) = read_search(path).ran
    assert isinstance(ran.outcome, CallFailure)
    async with recorded(path, paying(calls), PAY, NEVER, resume=True, effects=PAYING) as (it, file):
        result = await it.repair(PAY, Budget(candidates=60), options=OPTIONS, journal=file)
    assert calls == [{"amount": 5}]
    assert "denied" in {fault.kind for fault in result.base.evaluation.faults}


class TestTheFile:
    def test_a_new_record_is_not_written_over_another(self, tmp_path: Path):
        create_record(tmp_path / "r", head(), RECORDER).close()
        with pytest.raises(RecordExists, match="go on with it by --resume"):
            create_record(tmp_path / "r", head(), RECORDER)

    @pytest.mark.parametrize(
        ("other", "said"),
        [
            pytest.param({"base": weather_plan()}, "another workflow", id="workflow"),
            pytest.param({"inputs": digest({"city": "Rome"})}, "other inputs", id="inputs"),
            pytest.param({"checks": digest(RIGHT)}, "other checks", id="checks"),
            pytest.param({"task": "something else"}, "another task", id="task"),
            pytest.param({"seed": 8}, "seed 3", id="seed"),
        ],
    )
    def test_a_record_of_something_else_is_refused(self, tmp_path: Path, other: dict[str, Any], said: str):
        path = tmp_path / "r"
        create_record(path, head(), RECORDER).close()
        before = path.read_bytes()
        with pytest.raises(RecordMismatch, match=said):
            resume_record(path, head(**other), RECORDER)
        assert path.read_bytes() == before

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            pytest.param(b"", "no record of a search", id="empty"),
            pytest.param(b"\x00\xff\x00\n", "line 1", id="binary"),
            pytest.param(b'{"kind":"search"', "no record of a search", id="torn first line"),
            pytest.param(b'{"kind":"else"}\n', "line 1", id="another kind of line"),
            pytest.param(b"[1, 2]\n", "line 1", id="not an object"),
        ],
    )
    def test_what_is_no_record_is_refused_with_its_place(self, tmp_path: Path, content: bytes, said: str):
        path = tmp_path / "r"
        path.write_bytes(content)
        with pytest.raises(RecordUnreadable, match=said):
            read_search(path)
        assert path.read_bytes() == content

    def test_a_broken_line_before_the_last_is_an_error_and_not_skipped(self, tmp_path: Path):
        path = tmp_path / "r"
        create_record(path, head(), RECORDER).close()
        path.write_bytes(path.read_bytes() + b'{"kind":"candidate"\n' + b'{"kind":"call"')
        with pytest.raises(RecordUnreadable, match="line 2"):
            read_search(path)

    def test_a_missing_file_and_a_folder_say_so(self, tmp_path: Path):
        for path in (tmp_path / "gone", tmp_path):
            with pytest.raises(RecordUnreadable, match="cannot be read"):
                read_search(path)

    def test_a_record_of_a_newer_version_is_left_alone(self, tmp_path: Path):
        path = tmp_path / "r"
        create_record(path, replace_version(head(), 99), RECORDER).close()
        with pytest.raises(RecordUnreadable, match="newer version"):
            read_search(path)


def replace_version(line: SearchLine, version: int) -> SearchLine:
    return line.model_copy(update={"version": version})


async def test_no_secret_is_in_it(tmp_path: Path):
    def redact(value: JsonValue) -> JsonValue:
        return json.loads(json.dumps(value).replace("Oslo", "[secret]"))

    path = tmp_path / "search.jsonl"
    base = weather_plan(now={"city": "Oslo"})
    async with recorded(path, weather_servers(), base, recorder=Recorder(redact)) as (it, file):
        it.evaluator.options = replace(it.evaluator.options, redact=redact)
        await it.repair(base, Budget(candidates=40), options=OPTIONS, journal=file)
    body = "".join(path.read_text().splitlines(keepends=True)[1:])
    assert "Oslo" not in body
    assert "[secret]" in body
