"""The always-there tools as a client lists them: written for the model that must choose one.

What they do is `calls`; their arguments are `arguments`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import mcp.types as types
from pydantic import BaseModel

from catalog.tools import JsonSchema
from server.surface import answers
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
from server.surface.job_arguments import JOB_ARGUMENTS
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
        **JOB_ARGUMENTS,
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
Do a task that needs tools: plans, runs and repairs a workflow until the assertions hold, and keeps what
works as a skill. Returns status (verified: the checks hold; succeeded: nothing was checked; unverified;
failed; needs_approval: the user must allow a call), outputs, workflow and skill.
Example: {"task": "Convert 20 C to F", "assertions": ["output.fahrenheit == `68`"]}"""

_RUN = """\
Run a workflow of tool calls that you wrote; independent calls run in parallel. Returns status, outputs and
faults, each with node, place and remedy. If it fails, give it to repair_workflow.
Example: {"workflow": {"name": "sum", "inputs": {"type": "object"}, "nodes": [{"id": "add", "tool":
{"server": "math", "tool": "add"}, "arguments": {"x": "$inputs.a", "y": 2}}], "outputs": {"total":
"$nodes.add.output#/result"}}, "inputs": {"a": 1}}"""

_REPAIR = """\
Repair a workflow that fails, by trying changes on the real tools until its assertions hold. Give at least
one assertion: without one, what merely runs counts as success. Nothing that may change the world is done
twice. Returns the workflow, outputs, edits and what is still wrong.
Example: {"workflow": {"name": "sum"}, "task": "add 1 and 2", "assertions": ["output.total == `3`"]}"""

_FIND_SKILLS = """\
Search the skills: tested workflows that earned trust. Use it before solve; most skills are not listed here.
Returns hits, best first, for call_skill.
Example: {"query": "temperature in fahrenheit"}"""

_DESCRIBE_SKILL = """\
Show one skill whole: schemas, workflow, tests with examples, when to use it, pitfalls.
Example: {"name": "weather_in_fahrenheit"}"""

_CALL_SKILL = """\
Call a skill by name, listed here or not. Returns status, outputs and faults.
Example: {"name": "weather_in_fahrenheit", "arguments": {"city": "Paris"}}"""

_FIND_TOOLS = """\
Search the tools of all tool servers. Returns hits with input schema and effect (pure, read, write or
unknown), best first, for run_workflow and call_tool.
Example: {"query": "convert temperature"}"""

_CALL_TOOL = """\
Call one tool of a tool server. Returns its own answer unchanged. The call is recorded, so that what you
work out can become a skill.
Example: {"server": "math", "tool": "add", "arguments": {"x": 1, "y": 2}}"""

_REPORT_OUTCOME = """\
Say whether an earlier result proved right. Skills that prove wrong are withdrawn.
Example: {"trace_id": "...", "passed": false, "detail": "the total left out the last row"}"""


_SAVE_SKILL = """\
Keep what you just worked out as a skill: compiles your calls, or one run_workflow, into a tested workflow
whose inputs are the values the task says. Returns the skill with its state (active:
callable now; proposed: a person must approve it).
Example: {"name": "order_status", "task": "Where is order A-17?"}"""


_START_JOB = """\
Call one of these tools in the background; returns the job's id at once. It goes on when you disconnect.
Example: {"tool": "solve", "arguments": {"task": "..."}}"""

_POLL_JOB = """\
See a job: working, input_required (the user is asked), completed with its result, failed or cancelled.
Example: {"job": "...", "wait_seconds": 30}"""

_CANCEL_JOB = """\
Stop a job; what its calls did is not undone.
Example: {"job": "..."}"""


def _tool(
    name: str, title: str, description: str, output: JsonSchema | None, hints: types.ToolAnnotations
) -> types.Tool:
    return types.Tool(
        name=name,
        title=title,
        description=description,
        input_schema=input_schema(ARGUMENTS[name]),
        output_schema=output,
        annotations=hints.model_copy(update={"title": title}),
    )


_TOOLS = (
    _tool("solve", "Solve a task", _SOLVE, answers.REPAIR, _ACTS),
    _tool("run_workflow", "Run a workflow", _RUN, answers.RUN, _ACTS),
    _tool("repair_workflow", "Repair a workflow", _REPAIR, answers.REPAIR, _ACTS),
    _tool("find_skills", "Find skills", _FIND_SKILLS, answers.SKILLS, _READS),
    _tool("describe_skill", "Describe a skill", _DESCRIBE_SKILL, answers.SKILL, _READS),
    _tool("call_skill", "Call a skill", _CALL_SKILL, answers.RUN, _ACTS),
    _tool("find_tools", "Find tools", _FIND_TOOLS, answers.TOOLS, _READS),
    # The upstream's answer passes through as it is, so no schema can be promised for it.
    _tool("call_tool", "Call a tool", _CALL_TOOL, None, _ACTS),
    _tool("report_outcome", "Report an outcome", _REPORT_OUTCOME, answers.NOTED, _NOTES),
    _tool("save_skill", "Save a skill", _SAVE_SKILL, answers.SAVED, _ACTS),
    _tool("start_job", "Start a job", _START_JOB, answers.JOB, _ACTS),
    _tool("poll_job", "Look at a job", _POLL_JOB, answers.JOBS, _READS),
    _tool("cancel_job", "Cancel a job", _CANCEL_JOB, answers.JOB, _NOTES),
)

BUILTIN_TOOLS: Mapping[str, types.Tool] = MappingProxyType({tool.name: tool for tool in _TOOLS})
"""Always-there tools by name, in the order of `BUILTIN_NAMES`."""

if tuple(BUILTIN_TOOLS) != BUILTIN_NAMES:
    raise AssertionError("the always-there tools and their names differ")
