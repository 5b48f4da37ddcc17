"""What a client waits for when `skillbank serve` starts: the modules that are loaded by its first answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from catalog.tools import Snapshot, Tool, ToolId
from skills_store.sqlite import open_sqlite_store

PROGRAM = """
import json, sys
from server.cli import main
main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
LIST = ("tools/list", {})
FIND = ("tools/call", {"name": "find_tools", "arguments": {"query": "say a text again"}})
NEVER = {"anthropic", "openai", "networkx", "rich", "sqlite_utils", "pandas", "fastmcp", "psycopg"}
"""Libraries that neither answer needs."""
MODEL = {"numpy", "onnxruntime", "tokenizers"}
LATER = {
    *("answering", "deciding", "escalating", "learning", "proving", "repairing"),
    *("reviewing", "routing", "saving", "seeding", "solving", "standing"),
}
"""Use cases of `server.bank` that are loaded when they are asked for."""
UNASKED = {
    "server.demo",
    "server.evolution",
    "server.compilation",
    "server.curation",
    "server.cli.render",
}


def serve_command(folder: Path) -> list[str]:
    """The command that serves a store whose only server has listed a tool before, and is dead now."""
    config, store = folder / "config.json", folder / "store.db"
    dead = {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}
    config.write_text(json.dumps({"mcpServers": {"dead": dead}}), "utf-8")
    kept = open_sqlite_store(store)
    echo = Tool(ToolId("dead", "echo"), {"type": "object"}, description="Says a text again.")
    kept.save_snapshot(Snapshot.of(echo), 0.0)
    kept.close()
    return [sys.executable, "-c", PROGRAM, "serve", "--config", str(config), "--store", str(store)]


def answers_and_modules(
    command: Sequence[str], requests: Sequence[tuple[str, dict[str, Any]]]
) -> tuple[list[dict[str, Any]], set[str]]:
    """The answers to some requests, and what the process that gave them had loaded by then."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        answers: list[dict[str, Any]] = []
        for number, (method, params) in enumerate(requests):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {"_meta": META, **params}}
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            answers.append(json.loads(process.stdout.readline())["result"])
        _, told = process.communicate(timeout=60)
    return answers, set(json.loads(told.splitlines()[-1]))


def test_the_tool_list_is_answered_before_anything_heavy_is_loaded(tmp_path: Path):
    (listed,), loaded = answers_and_modules(serve_command(tmp_path), [LIST])
    assert "find_tools" in {tool["name"] for tool in listed["tools"]}
    assert loaded & NEVER == set()
    assert loaded & MODEL == set()
    assert loaded & {f"server.bank.{name}" for name in LATER} == set()
    assert loaded & UNASKED == set()


def test_tools_are_found_by_words_while_the_model_is_loaded_and_the_answer_says_so(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    (found,), loaded = answers_and_modules(serve_command(tmp_path), [FIND])
    content = found["structuredContent"]
    assert [(hit["server"], hit["tool"]) for hit in content["tools"]] == [("dead", "echo")]
    assert (content["method"], content["note"]) == ("lexical", "the model for meanings is being loaded")
    assert loaded & NEVER == set()
    assert loaded & {f"server.bank.{name}" for name in LATER} == set()
