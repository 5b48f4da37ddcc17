"""The always-there tools as a client lists them: written for the model that must choose one.

What they do is `calls`; their arguments are `arguments`. What they answer is `answers`, a resource: a
schema in every list would cost every conversation more than the tools themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import mcp.types as types
from pydantic import BaseModel

from server.surface.arguments import (
    CallSkill,
    CallTool,
    DescribeSkill,
    FindSkills,
    FindTools,
    RepairWorkflow,
    ReportOutcome,
    RunWorkflow,
    SaveSkill,
    Solve,
    input_schema,
)
from server.surface.icons import TOOL_ICONS
from server.surface.job_arguments import JobRequest
from server.surface.names import BUILTIN_NAMES

__all__ = ["ARGUMENTS", "BUILTIN_TOOLS"]

ARGUMENTS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "solve": Solve,
        "run_workflow": RunWorkflow,
        "repair_workflow": RepairWorkflow,
        "find_skills": FindSkills,
        "describe_skill": DescribeSkill,
        "call_skill": CallSkill,
        "find_tools": FindTools,
        "call_tool": CallTool,
        "report_outcome": ReportOutcome,
        "save_skill": SaveSkill,
        "job": JobRequest,
    }
)

_READS = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_ACTS = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
)
_NOTES = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

_SOLVE = """\
Do a task: plans, runs, repairs a workflow until the assertions hold, keeps it as a skill. Returns status
(verified: checks hold; succeeded: unchecked; unverified; failed; needs_approval: ask the user), outputs,
workflow, skill.
Example: {"task": "Convert 20 C to F", "assertions": ["output.f == `68`"]}"""

_RUN = """\
Run your workflow, independent calls in parallel. Returns status, outputs, faults with place and remedy.
Example: {"workflow": {"name": "sum", "inputs": {"type": "object"}, "nodes": [{"id": "add", "tool":
{"server": "math", "tool": "add"}, "arguments": {"x": "$inputs.a"}}], "outputs": {"total":
"$nodes.add.output#/result"}}}"""

_REPAIR = """\
Repair a failing workflow by trying changes on the real tools until its assertions hold; give one at least.
Never does twice what may change the world.
Example: {"workflow": {"name": "sum"}, "assertions": ["output.total == `3`"]}"""

_FIND_SKILLS = """\
Search the skills: tested workflows, most not listed here. Use it before solve.
Example: {"query": "temperature in fahrenheit"}"""

_DESCRIBE_SKILL = """\
Show a skill: schemas, workflow, tests, when to use it, pitfalls.
Example: {"name": "weather"}"""

_CALL_SKILL = """\
Call a skill by name, listed or not. Returns status, outputs, faults.
Example: {"name": "weather", "arguments": {"city": "Paris"}}"""

_FIND_TOOLS = """\
Search the tools of all servers. Returns input schema and effect (pure, read, write, unknown).
Example: {"query": "convert temperature"}"""

_CALL_TOOL = """\
Call one tool; returns its own answer. Recorded for save_skill.
Example: {"server": "math", "tool": "add", "arguments": {"x": 1}}"""

_REPORT_OUTCOME = """\
Say whether a result proved right. Wrong skills are withdrawn.
Example: {"trace_id": "...", "passed": false}"""

_SAVE_SKILL = """\
Compile your calls, or a run_workflow, into a tested skill (active: callable now; proposed: a person must
approve it).
Example: {"name": "order_status", "task": "Where is order A-17?"}"""

_JOB = """\
Long work that survives disconnect and restart: start calls a tool in the background; poll says how a job is
(working, input_required, completed, failed, cancelled); cancel stops it.
Example: {"action": "start", "tool": "solve", "arguments": {"task": "..."}}"""


def _tool(name: str, title: str, description: str, hints: types.ToolAnnotations) -> types.Tool:
    return types.Tool(
        name=name,
        title=title,
        description=description,
        input_schema=input_schema(ARGUMENTS[name]),
        icons=TOOL_ICONS,
        annotations=hints.model_copy(update={"title": title}),
    )


_TOOLS = (
    _tool("solve", "Solve a task", _SOLVE, _ACTS),
    _tool("run_workflow", "Run a workflow", _RUN, _ACTS),
    _tool("repair_workflow", "Repair a workflow", _REPAIR, _ACTS),
    _tool("find_skills", "Find skills", _FIND_SKILLS, _READS),
    _tool("describe_skill", "Describe a skill", _DESCRIBE_SKILL, _READS),
    _tool("call_skill", "Call a skill", _CALL_SKILL, _ACTS),
    _tool("find_tools", "Find tools", _FIND_TOOLS, _READS),
    _tool("call_tool", "Call a tool", _CALL_TOOL, _ACTS),
    _tool("report_outcome", "Report an outcome", _REPORT_OUTCOME, _NOTES),
    _tool("save_skill", "Save a skill", _SAVE_SKILL, _ACTS),
    _tool("job", "Long work", _JOB, _ACTS),
)

BUILTIN_TOOLS: Mapping[str, types.Tool] = MappingProxyType({tool.name: tool for tool in _TOOLS})
"""Always-there tools by name, in the order of `BUILTIN_NAMES`."""

if tuple(BUILTIN_TOOLS) != BUILTIN_NAMES:
    raise AssertionError("the always-there tools and their names differ")
