"""BFCL v3 multi-turn as a world: its API classes, its tasks and its checker, from its own package.

A turn ends when the agent submits; the reward is the checker's word over all turns, on the package's
own instances. Tools that a task withholds come with the turn that says so.
"""

from __future__ import annotations

import ast
import importlib
import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["open_world"]

_CATEGORIES = ("base", "long_context", "miss_param", "miss_func")
_MORE_TOOLS = "There are more tools now. Go on with what was asked."
_CLASSES = (
    "GorillaFileSystem", "MathAPI", "MessageAPI", "TicketAPI", "TradingBot", "TravelAPI", "TwitterAPI",
    "VehicleControlAPI",
)  # fmt: skip
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}
_FORBIDDEN = frozenset({"kill", "exit", "quit", "remove", "unlink", "popen", "Popen", "run"})


def open_world() -> BfclWorld:
    """Return the world, nothing of it loaded."""
    return BfclWorld()


class BfclWorld:
    """One episode at a time."""

    def __init__(self) -> None:
        package = importlib.import_module("bfcl_eval")
        self._data = Path(str(package.__file__)).parent / "data"
        self._backend: Any = importlib.import_module("bfcl_eval.constants.executable_backend_config")
        self._checker: Any = importlib.import_module(
            "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
        )
        self._executing: Any = importlib.import_module(
            "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"
        )
        self._entry: dict[str, Any] = {}
        self._truth: list[list[str]] = []
        self._turns: list[list[list[str]]] = []
        self._episode = ""

    def tasks(self) -> dict[str, Any]:
        """Return the ids by split, the categories, and the tools of all API classes."""
        splits = {name: [one["id"] for one in self._read(name)] for name in _CATEGORIES}
        return {"splits": splits, "tools": self._shown(self._docs(_CLASSES))}

    def reset(self, task: dict[str, Any], seed: int | None) -> dict[str, Any]:
        """Begin a task from its initial state; nothing in it is drawn by seed."""
        del seed
        wanted = str(task["id"])
        category = wanted.removeprefix("multi_turn_").rsplit("_", 1)[0]
        if category not in _CATEGORIES:
            raise LookupError(f"no task {wanted!r}: ids are multi_turn_CATEGORY_NUMBER of {_CATEGORIES}")
        self._entry = _of_id(self._read(category), wanted)
        answers = self._lines(self._data / "possible_answer" / f"BFCL_v4_multi_turn_{category}.json")
        self._truth = _of_id(answers, wanted)["ground_truth"]
        self._turns = [[]]
        self._episode = uuid.uuid4().hex
        docs = self._docs(self._entry["involved_classes"])
        return {
            "instruction": self._said(),
            "tools": self._tools(),
            "reference": {"turns": [[_parsed(call, docs) for call in turn] for turn in self._truth]},
        }

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Make one call on the live instances, and keep it for the checker."""
        if tool not in {known["name"] for known in self._tools()}:
            return _failed("tool_not_found", f"there is no tool {tool!r} now")
        if bad := [name for name in arguments if not name.isidentifier()]:
            return _failed("invalid_args", f"{bad[0]!r} is no argument of {tool}")
        text = f"{tool}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
        self._turns[-1].append([text])
        results, _ = self._executing.execute_multi_turn_func_call(
            [text], self._entry["initial_config"], self._entry["involved_classes"],
            f"live{self._episode}", self._entry["id"], long_context=self._is_long,
        )  # fmt: skip
        said = str(results[0])
        return {
            "content": [{"type": "text", "text": said}],
            "structured": _as_object(said),
            "data": said,
            "is_error": said.startswith(("Error during execution", '{"error"')),
        }

    def submit(self, answer: Any) -> dict[str, Any]:  # noqa: ANN401
        """End the turn: the next one's words and tools, or the end with its reward."""
        del answer  # the checker reads calls alone
        if len(self._turns) < len(self._truth):
            self._turns.append([])
            return {"done": False, "instruction": self._said(), "tools": self._tools()}
        return {"done": True, **self.score()}

    def score(self) -> dict[str, Any]:
        """Return the checker's word over all turns; turns not reached count as empty."""
        missing = len(self._truth) - len(self._turns)
        turns = [*self._turns, *([] for _ in range(missing))]
        # The package makes an identifier of the name: one that begins with a digit fails every call, those of
        # the reference too, and equal failures pass.
        name = f"checked{uuid.uuid4().hex}"
        said = self._checker.multi_turn_checker(
            turns, self._truth, self._entry, self._entry["id"].rsplit("_", 1)[0], name
        )
        detail = "state and responses are those of the reference"
        return {
            "reward": 1.0 if said["valid"] else 0.0,
            "detail": detail if said["valid"] else f"{said.get('error_type')}: {said.get('error_message')}",
        }

    @property
    def _is_long(self) -> bool:
        return "long_context" in self._entry["id"]

    def _read(self, category: str) -> list[dict[str, Any]]:
        return self._lines(self._data / f"BFCL_v4_multi_turn_{category}.json")

    def _lines(self, path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]

    def _said(self) -> str:
        messages: list[dict[str, str]] = self._entry["question"][len(self._turns) - 1]
        return "\n".join(message["content"] for message in messages) or _MORE_TOOLS

    def _docs(self, classes: Iterable[str]) -> dict[str, dict[str, Any]]:
        folder, names = self._data / "multi_turn_func_doc", self._backend.MULTI_TURN_FUNC_DOC_FILE_MAPPING
        docs = [doc for one in classes for doc in self._lines(folder / names[one])]
        return {doc["name"]: doc for doc in docs}

    def _tools(self) -> list[dict[str, Any]]:
        if not self._entry:
            return []
        withheld: set[str] = set(self._entry.get("excluded_function", ()))
        for turn, names in self._entry.get("missed_function", {}).items():
            if len(self._turns) - 1 < int(turn):
                withheld |= set(names)
        return self._shown(self._docs(self._entry["involved_classes"]), withheld)

    def _shown(
        self, docs: dict[str, dict[str, Any]], withheld: frozenset[str] | set[str] = frozenset()
    ) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "description": doc["description"],
                "input_schema": _json_schema(doc["parameters"]),
            }
            for name, doc in docs.items()
            if name not in withheld | _FORBIDDEN
        ]


def _of_id(entries: list[dict[str, Any]], wanted: str) -> dict[str, Any]:
    for entry in entries:
        if entry["id"] == wanted:
            return entry
    raise LookupError(f"no task {wanted!r}")


def _failed(kind: str, message: str) -> dict[str, Any]:
    content = [{"type": "text", "text": message}]
    return {"content": content, "structured": None, "data": message, "is_error": True, "error_type": kind}


def _as_object(text: str) -> Any:  # noqa: ANN401
    try:
        value: Any = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _json_schema(declared: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter's declaration under the type names of JSON Schema."""
    found = {key: value for key, value in declared.items() if key in ("description", "enum", "default")}
    kind = _TYPES.get(declared.get("type", ""), declared.get("type"))
    if kind is not None:
        found["type"] = kind
    if "properties" in declared:
        found["properties"] = {name: _json_schema(one) for name, one in declared["properties"].items()}
        found["required"] = list(declared.get("required", ()))
    if "items" in declared:
        found["items"] = _json_schema(declared["items"])
    return found


def _parsed(call: str, docs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a reference call as name and arguments, positional ones under their names."""
    tree = ast.parse(call, mode="eval").body
    if not isinstance(tree, ast.Call):
        raise ValueError(f"a reference call that is none: {call}")
    name = ast.unparse(tree.func)
    names = list(docs[name]["parameters"]["properties"])
    given = dict(zip(names, (ast.literal_eval(value) for value in tree.args), strict=False))
    given |= {str(one.arg): ast.literal_eval(one.value) for one in tree.keywords}
    return {"tool_name": name, "arguments": given}
