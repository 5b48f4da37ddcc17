"""A bare tool server of either era with one named protocol defect.

Standard library only and run by path, so that it starts in a few hundredths of a second:
`python -P defects.py DEFECT[@modern] [LOG]`, else of the handshake era. Each start and each call
that arrives is a line of JSON in LOG.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["DEFECTS", "defect_command", "main", "read_log"]

Message = dict[str, Any]

DEFECTS = {
    "none": "answers as it should",
    "noise": "prints lines that are no messages, some not even UTF-8, before and between answers",
    "silent": "never answers anything",
    "dies_at_start": "exits with code 3 and says why on its error output",
    "dies_at_start_once": "exits with code 3 in its first life",
    "dies_at_call": "exits during the first call of its life",
    "dies_at_unknown": "exits when asked for a method of the newer era",
    "ignores_unknown": "does not answer methods of the newer era",
    "hangs": "reads nothing more once a call arrived",
    "never_answers_calls": "answers everything but calls",
    "malformed_tools": "lists ten tools of which most are malformed",
    "unreadable_tools": "lists tools in a text that is no UTF-8, with lone surrogates and endless nesting",
    "hostile_schemas": "lists schemas that are remote, exponential, bottomless or none, and one good tool",
    "dialects": "lists one tool in each JSON Schema draft, recursive ones too",
    "odd_names": "lists names with spaces, separators, any letters, one twice; a call says which ran",
    "duplicate_names": "lists one name for two different tools",
    "huge_list": "lists 5,000 tools in one line",
    "wrong_protocol": "speaks a protocol revision that nobody knows",
    "endless_pages": "always names a next page",
    "repeated_cursor": "always names the same next page",
    "refuses_listing": "answers the listing with an error",
    "huge_answer": "answers with a line of the size that the call asks for",
    "many_rows": "answers with as many rows as the call asks for, structured or as text",
    "endless_line": "answers with a line that does not end",
    "bad_output": "answers structured content that does not fit its own output schema",
    "unreadable_answer": "answers with a lone surrogate",
    "malformed_result": "answers with a content block of an unknown type and no content list",
    "nan": "answers NaN in structured content",
    "wrong_shape": "answers a result whose parts have wrong types",
    "stubborn": "ignores the end of its input and the signal to terminate",
    "breeds": "starts a child of its own that outlives it",
    "escapes": "starts a child in a session of its own, whose parent ends at once, deaf to termination",
    "dies_after_call": "answers a call, then exits",
    "slow_start": "reads nothing for the first second of its life",
    "out_of_order": "answers two calls in the opposite order",
}


def defect_command(
    defect: str, log: Path | None = None, *, modern: bool = False
) -> tuple[str, tuple[str, ...]]:
    """Return command and arguments that start a server with this defect."""
    named = f"{defect}@modern" if modern else defect
    return sys.executable, ("-P", __file__, named, *([str(log)] if log is not None else []))


def read_log(log: Path) -> list[Message]:
    """Return what a server with this log did: `{"started": pid}` and `{"called": arguments}`."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


class _Server:
    def __init__(self, defect: str, log: Path | None, *, modern: bool) -> None:
        self.defect = defect
        self.modern = modern
        self.log = log
        self.calls = 0
        self.held: Message | None = None
        """A call that waits for the next one to be answered first."""

    def run(self) -> None:
        self.record({"started": os.getpid()})
        self.begin()
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "id" in message and self.defect != "silent":
                self.answer(message)
        while self.defect == "stubborn":
            time.sleep(60)

    def begin(self) -> None:
        match self.defect:
            case "noise":
                self.write(b"Starting up...\n\xff\xfe not text\n[]\n42\n\n{broken\n")
            case "dies_at_start":
                sys.stderr.write("\x1b[31mno database\x1b[0m at /nowhere\n")
                sys.exit(3)
            case "dies_at_start_once" if _is_first_life(self.log):
                sys.exit(3)
            case "stubborn":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            case "breeds":
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
                self.record({"bred": child.pid})
            case "escapes":
                self.record({"bred": int(subprocess.check_output([sys.executable, "-c", _ESCAPE]))})
            case "slow_start":
                time.sleep(1)
            case _:
                pass

    def answer(self, message: Message) -> None:
        match message["method"]:
            case "server/discover" if self.modern:
                version = _UNKNOWN_REVISION if self.defect == "wrong_protocol" else "2026-07-28"
                self.result(message, {"supportedVersions": [version], "capabilities": {"tools": {}}})
            case "initialize":
                self.result(
                    message,
                    {
                        "protocolVersion": _UNKNOWN_REVISION
                        if self.defect == "wrong_protocol"
                        else message["params"]["protocolVersion"],
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "defective", "version": "1"},
                    },
                )
            case "tools/list":
                self.list(message)
            case "tools/call":
                self.calls += 1
                self.record({"called": message["params"].get("arguments")})
                self.call(message)
            case _ if self.defect == "dies_at_unknown":
                sys.exit(1)
            case _ if self.defect == "ignores_unknown":
                pass
            case _:
                self.error(message, -32601, "Method not found")

    def list(self, message: Message) -> None:
        page: Message = {"tools": _tools(self.defect)}
        match self.defect:
            case "endless_pages":
                asked: Message = message.get("params") or {}
                number = int(asked.get("cursor") or 0) + 1
                page = {"tools": [{**_GOOD, "name": f"tool_{number}"}], "nextCursor": str(number)}
            case "repeated_cursor":
                page["nextCursor"] = "again"
            case "refuses_listing":
                return self.error(message, -32603, "fetch failed")
            case "unreadable_tools":
                return self.write(_unreadable(message["id"]))
            case _:
                pass
        return self.result(message, page)

    def call(self, message: Message) -> None:
        good: Message = {"content": [{"type": "text", "text": "done"}]}
        match self.defect:
            case "noise":
                self.write(b"calling...\n")
            case "dies_at_call" if _is_first_life(self.log):
                sys.exit(7)
            case "hangs":
                while True:
                    time.sleep(60)
            case "never_answers_calls":
                return None
            case "out_of_order":
                held, self.held = self.held, message
                if held is None:
                    return None
                self.held = None
                self.result(message, _said(message))
                return self.result(held, _said(held))
            case "dies_after_call":
                self.result(message, good)
                sys.exit(7)
            case "huge_answer":
                good["content"][0]["text"] = "x" * int(message["params"]["arguments"]["bytes"])
            case "many_rows":
                count = int(message["params"]["arguments"]["rows"])
                rows = {"rows": [{"id": n, "name": f"row {n}"} for n in range(count)]}
                if message["params"]["arguments"].get("as_text"):
                    good["content"][0]["text"] = json.dumps(rows)
                else:
                    good["structuredContent"] = rows
            case "odd_names" | "dialects":
                good["content"][0]["text"] = message["params"]["name"]
            case "endless_line":
                self.write(
                    b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % message["id"]
                )
                while True:
                    self.write(b"x" * 65_536)
            case "bad_output":
                good["structuredContent"] = {"n": "three"}
            case "unreadable_answer":
                good["content"][0]["text"] = "\ud800"
            case "malformed_result":
                good = {"content": {"type": "hologram", "x": 1}}
            case "nan":
                good["structuredContent"] = {"n": float("nan")}
            case "wrong_shape":
                good["isError"] = ["perhaps"]
            case _:
                pass
        return self.result(message, good)

    def result(self, message: Message, result: Message) -> None:
        if self.modern:
            result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result}
        self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def error(self, message: Message, code: int, text: str) -> None:
        self.send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text}})

    def send(self, message: Message) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def record(self, entry: Message) -> None:
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(json.dumps(entry) + "\n")


_ESCAPE = """
import subprocess, sys
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
print(subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True, **nothing).pid)
"""


def _said(call: Message) -> Message:
    """Return an answer that tells which call it answers."""
    text = json.dumps(call["params"].get("arguments"))
    return {"content": [{"type": "text", "text": text}]}


_GOOD: Message = {"name": "good", "inputSchema": {"type": "object"}}


def _tools(defect: str) -> list[Any]:
    match defect:
        case "malformed_tools":
            return [
                _GOOD,
                _GOOD,
                {"name": "empty_schema", "inputSchema": {}},
                {"name": "no_schema", "description": 5},
                {"name": "null_schema", "inputSchema": None},
                {"name": "array_input", "inputSchema": {"type": "array"}},
                {
                    "name": "array_output",
                    "inputSchema": {"type": "object"},
                    "outputSchema": {"type": "array"},
                },
                {"inputSchema": {"type": "object"}},
                "no tool at all",
                {**_GOOD, "name": "odd_hints", "annotations": {"readOnlyHint": "yes"}},
            ]
        case "hostile_schemas":
            return [
                _GOOD,
                *({"name": n, "inputSchema": _OBJECT, "outputSchema": s} for n, s in _HOSTILE.items()),
                *({"name": f"in_{n}", "inputSchema": s} for n, s in _HOSTILE.items()),
            ]
        case "dialects":
            return [{"name": name, "inputSchema": schema} for name, schema in DIALECTS.items()]
        case "odd_names":
            return [{**_GOOD, "name": name} for name in ODD_NAMES]
        case "duplicate_names":
            return [_GOOD, {**_GOOD, "description": "Another tool of this name."}]
        case "huge_list":
            return [{**_GOOD, "name": f"tool_{n}", "description": "Does this. " * 20} for n in range(5_000)]
        case "bad_output" | "nan":
            output = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            return [{**_GOOD, "outputSchema": output}]
        case _:
            return [_GOOD]


def _doubling(levels: int) -> Message:
    definitions: Message = {"d0": {"type": "string"}}
    for level in range(1, levels):
        definitions[f"d{level}"] = {"allOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    return {"type": "object", "$defs": definitions, "properties": {"x": {"$ref": f"#/$defs/d{levels - 1}"}}}


def _bottomless(levels: int) -> Message:
    schema: Message = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def _unreadable(request: int) -> bytes:
    """Return a line with a list whose text is broken in three tools of five."""
    endless = '{"type":"object","properties":{"x":' * 2_000 + "{}" + "}}" * 2_000
    tools = [
        b'{"name":"good","inputSchema":{"type":"object"}}',
        b'{"name":"latin","description":"gr\xfc\xdfe","inputSchema":{"type":"object"}}',
        b'{"name":"lone","description":"\\ud800","inputSchema":{"type":"object"}}',
        b'{"name":"endless","inputSchema":' + endless.encode() + b"}",
        b'{"name":"last","inputSchema":{"type":"object"}}',
    ]
    return b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[%s]}}\n' % (request, b",".join(tools))


_UNKNOWN_REVISION = "1999-01-01"
_OBJECT: Message = {"type": "object"}

ODD_NAMES = [
    "with space",
    "with__separator",
    "with/slash",
    "__",
    "größe",
    "工具",
    "🦊",
    "a" * 200,
    "a" * 199 + "b",
    "solve",
    "with space",
    "with\nline",
    "CamelCase",
    "camelcase",
]
"""What `odd_names` lists, one of them twice."""


def _draft(uri: str, keywords: Message) -> Message:
    return {"$schema": uri, "type": "object", "required": ["n"], **keywords}


_POSITIVE: Message = {"type": "integer", "exclusiveMinimum": 0}
_NODE: Message = {"type": "object", "properties": {"n": _POSITIVE, "child": {"$ref": "#/$defs/node"}}}
DIALECTS: dict[str, Message] = {
    "draft_04": _draft(
        "http://json-schema.org/draft-04/schema#",
        {"properties": {"n": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}},
    ),
    "draft_06": _draft("http://json-schema.org/draft-06/schema#", {"properties": {"n": _POSITIVE}}),
    "draft_07": _draft(
        "http://json-schema.org/draft-07/schema#",
        {
            "definitions": {"positive": _POSITIVE},
            "properties": {"n": {"$ref": "#/definitions/positive"}},
            "if": {"properties": {"n": {"const": 1}}},
            "then": {},
        },
    ),
    "draft_2020": _draft(
        "https://json-schema.org/draft/2020-12/schema",
        {
            "$defs": {"positive": {"$anchor": "positive", **_POSITIVE}},
            "properties": {"n": {"$ref": "#positive"}},
            "unevaluatedProperties": False,
        },
    ),
    "recursive": _draft(
        "https://json-schema.org/draft/2020-12/schema", {"$defs": {"node": _NODE}, "$ref": "#/$defs/node"}
    ),
    "unknown_dialect": _draft("https://example.org/my-schema", {"properties": {"n": _POSITIVE}}),
    "look_around": _draft(
        "http://json-schema.org/draft-07/schema#",
        {"properties": {"n": _POSITIVE, "mail": {"type": "string", "pattern": "^(?!\\.)(?=.+@).+$"}}},
    ),
}
"""One schema per dialect; each admits a positive `n` and nothing less."""

_HOSTILE: Message = {
    "remote": {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}},
    "exponential": _doubling(24),
    "nonsense": {"type": "object", "properties": {"x": {"type": "nonsense"}}},
    "bottomless": _bottomless(90),
    "vast": {"type": "object", "properties": {f"p{n}": {"description": "x" * 100} for n in range(3_000)}},
    "no_pattern": {"type": "object", "properties": {"x": {"type": 5, "pattern": "("}}},
}


def _is_first_life(log: Path | None) -> bool:
    return log is None or sum("started" in entry for entry in read_log(log)) == 1


def main(arguments: list[str]) -> None:
    """Serve on standard input and output with the defect that is named first."""
    defect, _, era = arguments[0].partition("@")
    if defect not in DEFECTS:
        raise SystemExit(f"unknown defect {defect!r}; known: {', '.join(DEFECTS)}")
    log = Path(arguments[1]) if len(arguments) > 1 else None
    _Server(defect, log, modern=era == "modern").run()


if __name__ == "__main__":
    main(sys.argv[1:])
