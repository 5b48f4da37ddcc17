"""The seven servers from PyPI side by side: listed, called, and undisturbed by broken neighbours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import anyio
import pytest

from catalog.config import load_config
from catalog.connections import open_connections
from catalog.result import CallFailure, CallSuccess, FailureKind
from catalog.testing.defects import defect_command
from catalog.tools import ToolId
from server.provisioning.demo_files import build_fixtures
from server.provisioning.demo_servers import DEMO_SERVERS, demo_document

pytestmark = [
    pytest.mark.live,
    pytest.mark.anyio,
    pytest.mark.skipif(
        shutil.which("git") is None or any(server.version() is None for server in DEMO_SERVERS),
        reason="needs git and skillbank[demo]",
    ),
]

CALLS = {
    "mathematics/convert_units": (
        {"value": 1, "from_unit": "mi", "to_unit": "km", "unit_type": "length"},
        "1.609",
    ),
    "calculator/multiply": ({"a": 6, "b": 7}, "42"),
    "hashlib/hash_md5": ({"data": "abc"}, "900150983cd24fb0d6963f7d28e17f72"),
    "time/convert_time": (
        {"source_timezone": "UTC", "time": "14:30", "target_timezone": "Asia/Tokyo"},
        "T23:30:00+09:00",
    ),
    "git/git_log": ({"repo_path": "${FIXTURES}/notes", "max_count": 1}, "Commit: "),
    "sqlite/connect_database": ({"database": ":memory:", "check_same_thread": False}, "conn_id"),
    "excel/read_range": (
        {"path": "${FIXTURES}/shop.xlsx", "sheet": "Orders", "range": "A1:B1"},
        "region",
    ),
}
"""By tool, arguments and a part of the answer."""


NEVER_READY = ("missing", "dead", "stuck")


def broken_servers() -> dict[str, object]:
    """Return entries that cannot work, each in a way of its own."""

    def defective(defect: str) -> dict[str, object]:
        command, arguments = defect_command(defect)
        return {"command": command, "args": list(arguments), "timeout_seconds": 3}

    return {
        "missing": {"command": "no-such-program-of-skillbank"},
        "dead": defective("dies_at_start"),
        "stuck": defective("silent"),
        "deaf": defective("hangs"),
    }


def configured(folder: Path, **more: object) -> Path:
    document = demo_document()
    document["mcpServers"] |= more
    path = folder / "config.json"
    path.write_text(json.dumps(document))
    return path


async def test_all_are_listed_and_called_while_broken_ones_are_named(tmp_path: Path):
    fixtures = tmp_path / "fixtures"
    fixtures.mkdir()
    build_fixtures(fixtures)
    wrong: list[str] = []
    with anyio.fail_after(120):
        async with open_connections(load_config(configured(tmp_path, **broken_servers()))) as connections:

            async def call(name: str) -> None:
                arguments, expected = CALLS[name]
                filled = json.loads(json.dumps(arguments).replace("${FIXTURES}", str(fixtures)))
                outcome = await connections.call(ToolId(*name.split("/")), filled)
                answer = json.dumps([outcome.structured, outcome.content])
                if not (isinstance(outcome, CallSuccess) and expected in answer):
                    wrong.append(f"{name}: {outcome}")

            snapshot = await connections.snapshot()
            async with anyio.create_task_group() as group:
                for name in CALLS:
                    group.start_soon(call, name)
                lost = await connections.call(ToolId("deaf", "echo"), {})
            reports = {report.name: report for report in connections.reports()}

    assert wrong == []
    assert snapshot.servers >= {server.name for server in DEMO_SERVERS}
    assert isinstance(lost, CallFailure)
    assert lost.kind in (FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE)
    assert {name: reports[name].status for name in NEVER_READY} == dict.fromkeys(NEVER_READY, "failed")
    assert [name for name in NEVER_READY if not reports[name].problems] == []
    assert {name: reports[name].problems for name in reports if name not in broken_servers()} == {
        server.name: () for server in DEMO_SERVERS
    }
