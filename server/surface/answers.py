"""What the always-there tools answer: the keys of `server.reports` as a client may rely on them.

They are a resource and not in the list of tools, which every conversation pays for. They are open and
shallow: they name what a caller acts on and leave the full models to `docs/schemas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

from catalog.search import SearchMethod
from catalog.tools import JsonSchema
from skills_store.skill import SkillState
from skills_store.trace import Status

__all__ = ["ANSWERS"]

_TEXT: JsonSchema = {"type": "string"}
_COUNT: JsonSchema = {"type": "integer"}
_SECONDS: JsonSchema = {"type": "number"}
_OBJECT: JsonSchema = {"type": "object", "additionalProperties": True}
_OBJECTS: JsonSchema = {"type": "array", "items": _OBJECT}
_STRINGS: JsonSchema = {"type": "array", "items": _TEXT}


def _or_null(schema: JsonSchema, description: str) -> JsonSchema:
    return {"anyOf": [schema, {"type": "null"}], "description": description}


def _answer(properties: JsonSchema, required: list[str]) -> JsonSchema:
    return {
        "type": "object",
        "properties": properties,
        "required": [*required],
        "additionalProperties": True,
    }


_SEARCHED: JsonSchema = {
    "method": _or_null({"type": "string", "enum": [*get_args(SearchMethod)]}, "What was compared."),
    "note": {**_TEXT, "description": "Why only words were compared."},
}

_STATUS: JsonSchema = {"type": "string", "enum": [*get_args(Status)]}
_STATE: JsonSchema = {"type": "string", "enum": [*get_args(SkillState)]}
_FAULTS: JsonSchema = {
    "type": "array",
    "description": "What is wrong, each with its place.",
    "items": _answer(
        {
            "kind": _TEXT,
            "message": _TEXT,
            "node": _or_null(_TEXT, "Node id; null: the whole document."),
            "pointer": {"type": "string", "description": "JSON pointer into the document."},
        },
        ["kind", "message"],
    ),
}
_COMMON: JsonSchema = {
    "status": _STATUS,
    "outputs": _or_null(_OBJECT, "The declared outputs; null when the run did not get that far."),
    "faults": _FAULTS,
    "calls": {**_COUNT, "description": "Upstream calls made."},
    "seconds": _SECONDS,
    "trace_id": _or_null(_TEXT, "For report_outcome."),
    "trace": {**_OBJECTS, "description": "Executed steps; empty unless detail was asked for."},
    "not_repeated": {**_OBJECTS, "description": "Calls held back, with the reason and how to allow them."},
    "verifications": {**_OBJECTS, "description": "Who checked the result, and what they said."},
}

_RUN: JsonSchema = _answer(_COMMON, ["status", "outputs", "faults", "calls"])
"""`RunReport`."""

_REPAIR: JsonSchema = _answer(
    {
        **_COMMON,
        "workflow": {**_OBJECT, "description": "The best workflow found, verified or not."},
        "edits": {**_OBJECTS, "description": "What was changed, step by step."},
        "diff": _TEXT,
        "initial_faults": _FAULTS,
        "candidates": {**_COUNT, "description": "Workflows tried."},
        "tokens": _COUNT,
        "skill": _or_null(_TEXT, "Name of the skill used or made."),
        "skill_state": _or_null(_STATE, "State of that skill."),
        "skill_reason": {"type": "string", "description": "Why it is in that state, or why there is none."},
        "answer": _or_null(
            _OBJECT, "The outputs in words, with the nodes they rest on; null: not asked for."
        ),
        "judgement": _or_null(_OBJECT, "What a judge thinks of the run; null: not asked for."),
        "solved_by": _or_null(_TEXT, "How far planning with a model had to go; null: it planned nothing."),
        "route": _or_null(_TEXT, "direct: a skill ran; seeded: a skill helped; dynamic: planned anew."),
        "drive": _or_null(_OBJECT, "How the model was driven: steps, ended, tokens; null: it planned."),
        "lineage": {**_OBJECTS, "description": "Candidates tried; empty unless detail was asked for."},
    },
    ["status", "outputs", "workflow", "edits", "faults", "calls", "candidates", "seconds"],
)
"""`RepairReport`."""

_SKILLS: JsonSchema = _answer(
    {
        "skills": {
            "type": "array",
            "items": _answer(
                {
                    "name": _TEXT,
                    "version": _COUNT,
                    "state": _STATE,
                    "description": _TEXT,
                    "tool_name": _or_null(_TEXT, "Listed tool; null: only by call_skill."),
                    "inputs": _STRINGS,
                    "outputs": _STRINGS,
                    "score": _or_null(_SECONDS, "Fit in [0, 1]."),
                },
                ["name", "version", "state"],
            ),
        },
        **_SEARCHED,
        "confusable": {**_STRINGS, "description": "First hits that fit about alike: none is clearly meant."},
    },
    ["skills"],
)
"""`SkillsReport`."""

_SKILL: JsonSchema = _answer(
    {
        "name": _TEXT,
        "version": _COUNT,
        "state": _STATE,
        "description": _TEXT,
        "signature": _answer(
            {"input_schema": _OBJECT, "output_schema": _OBJECT}, ["input_schema", "output_schema"]
        ),
        "workflow": _OBJECT,
        "tests": _OBJECTS,
        "guidance": _OBJECT,
    },
    ["name", "version", "state", "signature", "workflow"],
)
"""`Skill`, without what its tests recorded."""

_TOOLS: JsonSchema = _answer(
    {
        "tools": {
            "type": "array",
            "items": _answer(
                {
                    "server": _TEXT,
                    "tool": _TEXT,
                    "description": _TEXT,
                    "effect": _TEXT,
                    "score": _SECONDS,
                    "input_schema": _OBJECT,
                    "output_schema": _or_null(_OBJECT, "Null where the server declares none."),
                    "goal": _or_null(_TEXT, "The part of a long query that it was found for."),
                    "reasons": _STRINGS,
                },
                ["server", "tool", "input_schema"],
            ),
        },
        **_SEARCHED,
    },
    ["tools"],
)
"""`ToolsReport`."""

_NOTED: JsonSchema = _answer({"trace": _TEXT, "passed": {"type": "boolean"}}, ["trace", "passed"])
"""What was recorded of an outcome."""
_SAVED: JsonSchema = _answer(
    {
        "skill": _or_null(_OBJECT, "The skill with name, version, state and inputs; null: not kept."),
        "reason": {"type": "string", "description": "Why it is in its state, or why it was not kept."},
        "calls": {**_COUNT, "description": "Successful calls it was compiled from."},
        "verdict": _or_null(_OBJECT, "Every check with what it looked at."),
    },
    ["skill", "reason"],
)

_JOB: JsonSchema = {
    "job": {"type": "string", "description": "Its id."},
    "tool": _TEXT,
    "status": {
        "type": "string",
        "enum": ["working", "input_required", "completed", "failed", "cancelled"],
    },
    "done": _SECONDS,
    "total": _or_null({"type": "number"}, "What done grows to; null: nobody can tell."),
    "message": _TEXT,
    "question": _or_null(_OBJECT, "The call that waits for the user's word."),
    "result": _or_null(_OBJECT, "Structured content of the tool's result."),
    "expires_at": _or_null({"type": "number"}, "Unix seconds after which it is forgotten."),
}
_JOBS: JsonSchema = _answer({**_JOB, "jobs": _OBJECTS}, [])
"""A job as it stands, or the list of jobs."""

ANSWERS: Mapping[str, JsonSchema] = MappingProxyType(
    {
        "solve": _REPAIR,
        "run_workflow": _RUN,
        "repair_workflow": _REPAIR,
        "find_skills": _SKILLS,
        "describe_skill": _SKILL,
        "call_skill": _RUN,
        "find_tools": _TOOLS,
        "report_outcome": _NOTED,
        "save_skill": _SAVED,
        "job": _JOBS,
    }
)
"""JSON Schemas by tool; `call_tool` gives the answer of another server, of which nothing can be promised."""
