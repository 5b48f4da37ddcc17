"""The real drift of excel-mcp-server 0.1.8 to 2.2.2: what it does to skills that stand on it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from installing import InstallFailed, install
from real_servers import Environment

from catalog.tools import ToolId
from server.bank import Bank
from server.bank.errors import SkillNotCallable
from server.requests import RepairRequest
from server.settings import Settings
from server.wiring import open_bank

pytestmark = [pytest.mark.anyio, pytest.mark.live]

OLD = Environment(registry="pypi", packages=("excel-mcp-server==0.1.8", "mcp<2", "fastmcp<3"))
NEW = Environment(registry="pypi", packages=("excel-mcp-server==2.2.2",))
TEXT = {"type": "string"}


@pytest.fixture(scope="module")
def environments() -> dict[str, Path]:
    try:
        return install({"excel-old": OLD, "excel-new": NEW})
    except InstallFailed as error:
        pytest.skip(f"excel-mcp-server cannot be installed here: {error}")


@asynccontextmanager
async def bank_on(place: Path, folder: Path) -> AsyncGenerator[Bank]:
    """Open the bank of a folder over one of the two versions."""
    script = next(place.rglob("excel-mcp-server"))
    config = folder / "config.json"
    effects = {"excel": {"read_data_from_excel": "read", "read_range": "read", "*": "write"}}
    server = {"command": str(script), "args": ["stdio"], "cwd": str(folder)}
    # No reset: it writes wherever a path says, which no fresh process takes back.
    own = {"effects": effects, "curation": {"withhold": 0}}
    config.write_text(json.dumps({"mcpServers": {"excel": server}, "skillbank": own}))
    with anyio.fail_after(240):
        async with open_bank(Settings(config, folder / "store.db")) as bank:
            yield bank


def reading():
    return {
        "name": "reads",
        "inputs": {
            "type": "object",
            "properties": {"path": TEXT, "sheet": TEXT},
            "required": ["path", "sheet"],
        },
        "nodes": [
            {
                "id": "cells",
                "tool": {"server": "excel", "tool": "read_data_from_excel"},
                "arguments": {"filepath": "$inputs.path", "sheet_name": "$inputs.sheet"},
            }
        ],
        "outputs": {"cells": "$nodes.cells.output#/result"},
    }


def copying():
    return {
        "name": "copies",
        "inputs": {"type": "object", "properties": {"path": TEXT}, "required": ["path"]},
        "nodes": [
            {
                "id": "copy",
                "tool": {"server": "excel", "tool": "copy_range"},
                "arguments": {
                    "filepath": "$inputs.path",
                    "sheet_name": "Sheet",
                    "source_start": "A1",
                    "source_end": "B1",
                    "target_start": "A5",
                },
            }
        ],
        "outputs": {"said": "$nodes.copy.output#/result"},
    }


async def test_skills_are_stale_at_once_say_what_changed_and_hold_again_on_the_old_version(
    environments, tmp_path
):
    books = [str(tmp_path / f"book{n}.xlsx") for n in range(4)]
    sheets = [{"path": book, "sheet": sheet} for book in books[1:3] for sheet in ("Sheet", "Other")]
    async with bank_on(environments["excel-old"], tmp_path) as bank:
        for number, book in enumerate(books):
            for tool, more in (
                ("create_workbook", {}),
                ("write_data_to_excel", {"sheet_name": "Sheet", "data": [["x", "y"], [number, 2]]}),
                ("write_data_to_excel", {"sheet_name": "Other", "data": [["z"], [10 + number]]}),
            ):
                await bank.call_tool(ToolId("excel", tool), {"filepath": book, **more})
        reads = await bank.repair(
            reading(),
            RepairRequest(
                task=f"Read the cells of sheet 'Sheet' in '{books[0]}'",
                inputs={"path": books[0], "sheet": "Sheet"},
                save="reads",
                examples=tuple(sheets),
            ),
        )
        assert reads.skill_state == "active", reads.skill_reason
        copies = await bank.repair(
            copying(), RepairRequest(inputs={"path": books[3]}, save="copies", allow=("excel/*",))
        )
        assert copies.skill == "copies", copies.skill_reason
        await bank.approve("copies") if copies.skill_state == "proposed" else None
        before = await bank.call_skill("reads", {"path": books[1], "sheet": "Sheet"})
        assert before.status == "succeeded"

    async with bank_on(environments["excel-new"], tmp_path) as bank:
        await bank.context.snapshot()
        states = {skill.name: (skill.state, skill.reason) for skill in bank.context.store.heads()}
        assert bank.published() == []
        with pytest.raises(SkillNotCallable, match="excel/read_data_from_excel is gone"):
            await bank.call_skill("reads", {"path": books[1], "sheet": "Sheet"})
        report = await bank.audit()
        after = {skill.name: skill.state for skill in bank.context.store.heads()}
        kept = {name: [s.state for s in bank.context.store.versions(name)] for name in states}
    assert states["reads"] == ("stale", "excel/read_data_from_excel is gone")
    assert states["copies"][0] == "stale"
    assert states["copies"][1].startswith("excel/copy_range changed since the skill was verified")
    assert {step.skill: step.step for step in report.taken} == {"reads": "parked", "copies": "parked"}
    assert after == {"reads": "stale", "copies": "stale"}
    assert all("active" not in of for of in kept.values())

    async with bank_on(environments["excel-old"], tmp_path) as bank:
        await bank.context.snapshot()
        report = await bank.audit()
        assert bank.context.store.head("reads").state == "active", report.taken
        again = await bank.call_skill("reads", {"path": books[1], "sheet": "Sheet"})
        (*_, last) = bank.context.store.changes("reads")
    assert (last.before, last.after, last.by) == ("stale", "active", "system")
    assert last.reason == "verified again after a change upstream"
    assert again.outputs == before.outputs
