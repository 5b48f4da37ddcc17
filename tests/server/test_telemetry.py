"""Spans are written to a file without a collector, hold no content unless asked for, and nest."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

PROGRAM = """
import anyio, json, os, sys
from pathlib import Path
from mcp import Client
from server.settings import Settings
from server.surface import BankServer
from server.telemetry import open_telemetry
from server.wiring import open_bank

folder, content = Path(sys.argv[1]), sys.argv[2] == "content"
settings = Settings(folder / "config.json", folder / "store.db", environment=dict(os.environ))
workflow = json.loads((folder / "workflow.json").read_text())

async def main():
    async with open_bank(settings) as bank, Client(BankServer(bank)) as client:
        checks = ["output.said == 'apricot'"]
        given = {"workflow": workflow, "inputs": {"text": "apricot"}, "assertions": checks}
        await client.call_tool("run_workflow", given)
        await client.call_tool("find_tools", {"query": "say"})
        await client.call_tool("solve", {"task": "say 'apricot'", "budget_seconds": 5})

with open_telemetry(folder / "spans.jsonl", dict(os.environ), content=content):
    anyio.run(main)
"""
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")
    tools = [{"name": "say", "behaviour": "echo", "input_schema": TEXT, "output_schema": TEXT}]
    (tmp_path / "scenario.json").write_text(json.dumps({"tools": tools}))
    desk = {"command": sys.executable, "args": ["-m", "catalog.testing", str(tmp_path / "scenario.json")]}
    own = {"effects": {"desk": {"*": "read"}}}
    (tmp_path / "config.json").write_text(json.dumps({"mcpServers": {"desk": desk}, "skillbank": own}))
    node = {"id": "say", "tool": {"server": "desk", "tool": "say"}, "arguments": {"text": "$inputs.text"}}
    outputs = {"said": "$nodes.say.output#/text"}
    workflow = {"name": "said", "inputs": TEXT, "nodes": [node], "outputs": outputs}
    (tmp_path / "workflow.json").write_text(json.dumps(workflow))
    return tmp_path


def spans(folder: Path, content: str) -> list[dict]:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), content],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in (folder / "spans.jsonl").read_text().splitlines()]


def test_spans_name_what_happened_nest_and_hold_no_content(folder: Path):
    found = spans(folder, "none")
    operations = {span["attributes"].get("gen_ai.operation.name") for span in found}
    assert {"invoke_workflow", "execute_tool", "plan", "search_memory", "evaluate"} <= operations
    tool = next(span for span in found if span["name"] == "execute_tool desk.say")
    by_id = {span["span_id"]: span for span in found}
    workflow = by_id[tool["parent_id"]]
    assert workflow["name"] == "invoke_workflow said"
    assert workflow["attributes"]["skillbank.status"] == "verified"
    assert by_id[workflow["parent_id"]]["name"] == "tools/call run_workflow"
    assert {"gen_ai.tool.name": "say", "skillbank.effect": "read"}.items() <= tool["attributes"].items()
    assert "apricot" not in json.dumps([s["attributes"] for s in found])
    assert (folder / "spans.jsonl").stat().st_mode & 0o777 == 0o600


def test_content_is_there_when_it_is_asked_for(folder: Path):
    found = spans(folder, "content")
    tool = next(span for span in found if span["name"] == "execute_tool desk.say")
    assert json.loads(tool["attributes"]["gen_ai.tool.call.arguments"]) == {"text": "apricot"}
    assert json.loads(tool["attributes"]["gen_ai.tool.call.result"]) == {"text": "apricot"}


class _Collector(BaseHTTPRequestHandler):
    """Takes what is sent to it over OTLP/HTTP, as a collector does."""

    taken: ClassVar[list[tuple[str, str | None, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.taken.append((self.path, self.headers.get("Content-Type"), body))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the library's hook)
        del format, args


def test_a_collector_is_sent_the_same_spans_by_the_standard_variable(folder: Path, monkeypatch):
    wire = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    _Collector.taken.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    serving = Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        written = spans(folder, "plain")
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
    sent: dict[str, str] = {}
    for path, kind, body in _Collector.taken:
        assert (path, kind) == ("/v1/traces", "application/x-protobuf")
        request = wire.ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            named = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
            assert named["service.name"] == "skillbank"
            for scope in resource.scope_spans:
                sent |= {span.span_id.hex(): span.name for span in scope.spans}
    assert sent == {span["span_id"]: span["name"] for span in written}
    assert {"execute_tool desk.say", "invoke_workflow said"} <= set(sent.values())
    assert not any(b"apricot" in body for _, _, body in _Collector.taken)
