"""The bank as a whole: what it promises the surface, and how it is opened."""

from __future__ import annotations

import json
import os
import sys

import anyio
import pytest

from catalog.testing.defects import read_log
from server.bank import Bank
from server.progress import Progress
from server.requests import RepairRequest
from server.settings import Settings
from server.surface.port import BankPort
from server.verification import Checks
from server.wiring import open_bank
from skills_store.errors import StoreUnusable

pytestmark = pytest.mark.anyio

NUMBER = {"type": "number"}
PAIR = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@pytest.fixture
def adding(node, document):
    return document(
        node("sum", "calculator/add", {"a": "$inputs.a", "b": 2}),
        outputs={"sum": "$nodes.sum.output#/result"},
        inputs={"a": NUMBER},
    )


async def test_it_is_what_the_surface_asks_for(open_desk):
    async with open_desk() as desk:
        port: BankPort = desk.bank
        assert port.published() == []
        assert port.revision() == desk.store.revision()


async def test_it_says_what_it_is_doing_to_whoever_asks(open_desk, adding):
    heard: list[Progress] = []
    async with open_desk() as desk:
        wanted = RepairRequest(inputs={"a": 3}, checks=Checks(("output.sum == `5`",)), save="adds")
        await desk.bank.repair(adding, wanted, progress=heard.append)
        assert desk.progress == []
    stages = list(dict.fromkeys(moment.stage for moment in heard))
    assert stages == ["connect", "run", "repair", "compile", "admit"]
    assert [moment.candidates for moment in heard if moment.stage == "repair"] == [1]


async def test_the_revision_moves_with_the_skills(open_desk, adding):
    async with open_desk() as desk:
        before = desk.bank.revision()
        wanted = RepairRequest(inputs={"a": 3}, checks=Checks(("output.sum == `5`",)), save="adds")
        await desk.bank.repair(adding, wanted)
        assert desk.bank.revision() > before


async def test_cancelling_leaves_no_half_written_skill(open_desk, adding):
    async with open_desk() as desk, anyio.create_task_group() as tasks:

        def stop(moment: Progress) -> None:
            if moment.stage == "admit":
                tasks.cancel_scope.cancel()

        wanted = RepairRequest(inputs={"a": 3}, checks=Checks(("output.sum == `5`",)), save="adds")
        tasks.start_soon(lambda: desk.bank.repair(adding, wanted, progress=stop))
    async with open_desk() as later:
        assert later.store.heads() == []
        assert later.bank.published() == []


class TestOpening:
    @pytest.fixture
    def settings(self, tmp_path):
        scenario, log = tmp_path / "scenario.json", tmp_path / "log.jsonl"
        tool = {"name": "say", "behaviour": "echo", "input_schema": PAIR, "output_schema": PAIR}
        scenario.write_text(json.dumps({"tools": [tool], "log": str(log)}))
        server = {
            "command": sys.executable,
            "args": ["-m", "catalog.testing", str(scenario)],
            "env": {"API_KEY": "hunter2-very-secret"},
        }
        config = tmp_path / "config.json"
        effects = {"desk": {"*": "pure"}}
        config.write_text(json.dumps({"mcpServers": {"desk": server}, "skillbank": {"effects": effects}}))
        return Settings(config, tmp_path / "store.db", environment=dict(os.environ))

    async def test_starts_no_server_before_one_is_needed(self, settings, tmp_path):
        async with open_bank(settings) as bank:
            assert isinstance(bank, Bank)
            await bank.list_skills()
            assert bank.published() == []
        assert read_log(tmp_path / "log.jsonl") == []

    async def test_keeps_configured_secrets_out_of_everything_stored(
        self, settings, tmp_path, node, document
    ):
        saying = document(
            node("n", "desk/say", {"text": "$inputs.text"}),
            outputs={"said": "$nodes.n.output#/text"},
            inputs={"text": {"type": "string"}},
        )
        async with open_bank(settings) as bank:
            report = await bank.run(saying, {"text": "it is hunter2-very-secret"}, Checks())
        assert report.status == "succeeded"
        files = [p for p in tmp_path.rglob("*") if p.is_file() and p.name.startswith("store")]
        assert files
        assert not [p.name for p in files if b"hunter2-very-secret" in p.read_bytes()]

    async def test_a_store_that_cannot_be_used_is_a_typed_error(self, settings):
        settings.store_path.write_bytes(b"this is no database at all, and too long to be an empty one")
        with pytest.raises(StoreUnusable):
            async with open_bank(settings):
                raise AssertionError("it opened")
