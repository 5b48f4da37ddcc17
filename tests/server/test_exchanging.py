"""Skills between banks: out as files, in as shadow, trusted only after tests here and a person's word."""

from __future__ import annotations

import importlib.metadata
import json
from dataclasses import replace

import pytest

from catalog.effects import Effect
from catalog.testing import ScriptedServer, ScriptedTool
from catalog.tools import ToolId
from server.bank import Bank
from server.bank.errors import NotDecided, NotSaved, SkillNotCallable
from server.requests import SaveRequest
from skills_store.errors import NotImportable
from skills_store.redaction import Redactor
from skills_store.store import MemoryStore

pytestmark = pytest.mark.anyio
ADD = ToolId("calculator", "add")


async def saved(bank):
    await bank.call_tool(ADD, {"a": 4, "b": 5}, recording="talk")
    await bank.save(SaveRequest("plus", recording="talk", inputs={"a": 4, "b": 5}))


def written(report, folder):
    for path, content in report.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder / next(iter(report.files)).split("/")[0]


def another(bank):
    """A bank over the same servers that knows no skill."""
    return Bank(replace(bank.context, store=MemoryStore()))


@pytest.mark.parametrize("form", ["bundle", "skill-md"])
async def test_a_skill_comes_back_equal_and_waits_for_proof(open_desk, tmp_path, form):
    async with open_desk() as desk:
        await saved(desk.bank)
        exported = await desk.bank.export("plus", None, form)
        other = another(desk.bank)
        taken = await other.import_file(written(exported, tmp_path / "out"))
        assert (taken.skill.state, taken.digest) == ("shadow", exported.digest)
        assert [skill.state for skill in (await other.list_skills()).skills] == ["shadow"]
        with pytest.raises(SkillNotCallable):
            await other.call_skill("plus", {"a": 1, "b": 2})
        with pytest.raises(NotDecided):
            await other.approve("plus")
        assert (await other.test_skill("plus")).passed
        assert (await other.approve("plus")).state == "active"
        assert (await other.call_skill("plus", {"a": 1, "b": 2})).outputs == {"result": 3}
        again = await other.export("plus", None, form)
    assert again.files == exported.files or again.digest == exported.digest


async def test_an_arazzo_description_comes_back_as_shadow_and_has_to_be_shown_to_work(open_desk, tmp_path):
    async with open_desk() as desk:
        await saved(desk.bank)
        other = another(desk.bank)
        taken = await other.import_file(written(await desk.bank.export("plus", None, "arazzo"), tmp_path))
        skill = await other.show_skill("plus")
        tested = await other.test_skill("plus")
        with pytest.raises(SkillNotCallable):
            await other.call_skill("plus", {"a": 1, "b": 2})
        before = await desk.bank.show_skill("plus")
    assert (taken.skill.state, skill.content_hash) == ("shadow", before.content_hash)
    assert [str(pin.tool) for pin in skill.pins] == ["calculator/add"]
    assert not tested.passed  # tests do not travel in a description


async def test_a_yaml_description_takes_the_contracts_that_are_known_here(open_desk, tmp_path):
    file = tmp_path / "sum.yaml"
    file.write_text(
        "arazzo: 1.0.1\ninfo: {title: Sum, version: '1'}\nworkflows:\n  - workflowId: sum-of-two\n"
        "    inputs: {type: object, properties: {a: {type: number}, b: {type: number}}, required: [a, b]}\n"
        "    steps:\n      - stepId: add\n        x-mcp-tool: {server: calculator, tool: add}\n"
        "        parameters: [{name: a, value: $inputs.a}, {name: b, value: $inputs.b}]\n"
        "        outputs: {sum: $response.body#/result}\n"
        "    outputs: {sum: $steps.add.outputs.sum}\n"
    )
    async with open_desk() as desk:
        with pytest.raises(NotImportable, match="knows that tool's contract: add its server first"):
            await desk.bank.import_file(file)
        snapshot = await desk.context.snapshot()
        await desk.bank.import_file(file)
        skill = await desk.bank.show_skill("sum_of_two")
        assert [pin.contract_hash for pin in skill.pins] == [snapshot.get(ADD).contract_hash]
        assert skill.state == "shadow"


async def test_taking_the_same_in_again_changes_nothing(open_desk, tmp_path):
    async with open_desk() as desk:
        await saved(desk.bank)
        file = written(await desk.bank.export("plus", None, "bundle"), tmp_path)
        taken = await desk.bank.import_file(file)
        assert (taken.skill.version, taken.skill.state) == (1, "active")


async def test_a_name_that_is_taken_is_not_replaced(open_desk, tmp_path):
    async with open_desk() as desk:
        await saved(desk.bank)
        file = written(await desk.bank.export("plus", None, "bundle"), tmp_path)
        other = another(desk.bank)
        await other.call_tool(ADD, {"a": 1, "b": 1}, recording="one")
        await other.save(SaveRequest("plus", recording="one", inputs={"only": 1}))
        with pytest.raises(NotImportable, match="another skill plus here"):
            await other.import_file(file)


async def test_what_a_file_says_of_effects_is_not_believed(open_desk, tmp_path):
    async with open_desk() as desk:
        await saved(desk.bank)
        file = written(await desk.bank.export("plus", None, "bundle"), tmp_path)
    doubting = {"calculator": {"*": Effect.UNKNOWN}}
    async with open_desk(effects=doubting, store=MemoryStore()) as desk:
        await desk.context.snapshot()
        await desk.bank.import_file(file)
        skill = await desk.bank.show_skill("plus")
        assert not skill.hints.read_only
        assert [pin.effect for pin in skill.pins] == [Effect.UNKNOWN]


async def test_where_its_tools_are_others_it_stays_shadow(open_desk, tmp_path):
    async with open_desk() as desk:
        await saved(desk.bank)
        file = written(await desk.bank.export("plus", None, "bundle"), tmp_path)
    tool = ScriptedTool("add", lambda _: {"result": 9}, {"type": "object", "properties": {"a": {}, "b": {}}})
    async with open_desk({"calculator": ScriptedServer(lambda: [tool])}, store=MemoryStore()) as desk:
        await desk.bank.import_file(file)
        report = await desk.bank.test_skill("plus")
        state = (await desk.bank.list_skills()).skills[0].state
    assert not report.passed
    assert any("its contract is not the one" in test.detail for test in report.tests)
    assert state == "shadow"


async def test_a_skill_with_a_secret_is_not_exported(open_desk):
    async with open_desk() as desk:
        await saved(desk.bank)
        knowing = Bank(replace(desk.context, redact=Redactor(("calculator",)).redact))
        with pytest.raises(NotSaved, match="holds a secret"):
            await knowing.export("plus", None, "bundle")


async def test_a_server_carries_what_runs_it_and_no_secret(open_desk):
    async with open_desk() as desk:
        await saved(desk.bank)
        exported = await desk.bank.export("plus", None, "server")
    files = {path.removeprefix("plus-server/"): content for path, content in exported.files.items()}
    assert {"serve.py", "mcp.json", "skill.json", "requirements.txt", "lib/server/standalone.py"} <= set(
        files
    )
    assert not any(path.startswith(("lib/server/bank/", "lib/server/cli/")) for path in files)
    needed = files["requirements.txt"].decode().splitlines()
    assert any(line.startswith("mcp<") for line in needed)
    declared = {line.split(";")[0].strip() for line in importlib.metadata.requires("skillbank") or []}
    assert set(needed) <= declared  # a module's name is not always that of what installs it
    assert not any(line.startswith(("openai", "anthropic", "pydantic-monty")) for line in needed)
    configured = json.loads(files["mcp.json"])
    assert set(configured["mcpServers"]) == {"calculator"}
    assert set(configured["skillbank"]["effects"]) == {"calculator"}
