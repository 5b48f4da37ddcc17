"""Prompts: plan a task with a skill at hand, and write what says that a result is right."""

from __future__ import annotations

import json

import mcp.types as types
from mcp import MCPError

from server.surface.port import BankPort
from server.surface.skill_packages import SkillPackages
from server.surface.sources import Wanted
from skills_store.errors import UnknownSkill
from skills_store.skill import Skill

__all__ = ["BankPrompts"]

_PLAN = "plan_with_skill"
_VERIFY = "write_verifier"
_PROMPTS = [
    types.Prompt(
        name=_PLAN,
        title="Plan with a skill",
        description="Plan a task with a tested skill at hand: call it, or build on its workflow.",
        arguments=[
            types.PromptArgument(name="skill", description="Name of the skill.", required=True),
            types.PromptArgument(name="task", description="The task, with every value.", required=True),
        ],
    ),
    types.Prompt(
        name=_VERIFY,
        title="Write a verifier",
        description="Write assertions and an output schema that say when a result is right.",
        arguments=[
            types.PromptArgument(name="task", description="The task in words.", required=True),
            types.PromptArgument(
                name="skill", description="A skill that is to do it, for the names of its outputs."
            ),
        ],
    ),
]

_PLAN_TEXT = """\
Task: {task}

A skill of this bank is at hand: {name}, version {version}, state {state}. It is attached, and so is its
workflow. Decide first whether it does the whole task.

1. If it does, call it: tool `{name}` where it is listed, else call_skill with {{"name": "{name}",
   "arguments": {{…}}}}. Its inputs are {inputs}; take their values from the task and invent none.
2. If it does a part, write a workflow for run_workflow that has it as a node
   ({{"id": "…", "skill": {{"name": "{name}", "version": {version}}}, "arguments": {{…}}}}) and adds the tools
   that are missing; find_tools has them. Values flow by whole-string references: $inputs.name,
   $nodes.id.output#/pointer.
3. If it does not help, say so in a sentence and plan with find_tools alone.

Give assertions with the run, so that it can be verified and repaired, not only executed."""

_VERIFY_TEXT = """\
Task: {task}

Write what would convince a stranger that a result of this task is right, before seeing any result. It is
given to run_workflow, repair_workflow or solve as `assertions` and `output_schema`.

- Assertions are JMESPath conditions over `output` (the declared outputs), `inputs` and `nodes`; literals
  stand in backticks: output.total == `42`, length(output.rows) > `0`, approx(output.mean, `3.14`, `0.01`).
- Every path that an assertion names must exist, and both sides of a comparison have comparable types; a
  path that is missing fails the check, it never passes it.
- Check what the task asks for: values that follow from it, relations between inputs and outputs, units,
  counts, order. A check that any answer passes is worth nothing; a check that a right answer can fail is
  worse.
- The output schema names every output with type, and bounds where the task implies them.
{about}
Answer with one JSON object: {{"assertions": [...], "output_schema": {{...}}, "why": ["one sentence for each
assertion"]}}."""


class BankPrompts:
    """The prompts over the skills of a bank."""

    def __init__(self, bank: BankPort, packages: SkillPackages) -> None:
        self._bank = bank
        self._packages = packages

    def prompts(self) -> list[types.Prompt]:
        """Return both prompts."""
        return _PROMPTS

    async def render(self, params: types.GetPromptRequestParams) -> types.GetPromptResult | None:
        """Return a prompt with its arguments filled in.

        Raises:
            MCPError: the skill it names is not there.
        """
        given = params.arguments or {}
        match params.name:
            case name if name == _PLAN:
                skill = await self._skill(given["skill"])
                return types.GetPromptResult(
                    description=f"Plan with {skill.name}", messages=self._plan(skill, given["task"])
                )
            case name if name == _VERIFY:
                skill = await self._skill(given["skill"]) if given.get("skill") else None
                text = _VERIFY_TEXT.format(task=given["task"], about=_about(skill))
                return types.GetPromptResult(description="Write a verifier", messages=[_said(text)])
            case _:
                return None

    def complete(self, wanted: Wanted) -> list[str] | None:
        """Return names of skills; a task is the user's own."""
        if wanted.of not in {prompt.name for prompt in _PROMPTS}:
            return None
        if wanted.argument != "skill":
            return []
        return [s.name for s in self._bank.skill_heads() if s.state in ("active", "context_only")]

    async def _skill(self, name: str) -> Skill:
        try:
            return await self._bank.describe_skill(name)
        except UnknownSkill as error:
            raise MCPError(
                types.INVALID_PARAMS, f"There is no skill {name!r}: find_skills searches them"
            ) from error

    def _plan(self, skill: Skill, task: str) -> list[types.PromptMessage]:
        text = _PLAN_TEXT.format(
            task=task,
            name=skill.name,
            version=skill.version,
            state=skill.state,
            inputs=json.dumps(skill.signature.input_schema.get("properties", {}), ensure_ascii=False),
        )
        messages = [_said(text)]
        package = next((f for f, one in self._packages.admitted().items() if one.name == skill.name), None)
        if package is not None and (found := self._packages.package(package)) is not None:
            messages.append(_attached(found.uri, "text/markdown", found.files["SKILL.md"].decode()))
        document = json.dumps(skill.workflow.to_json(), ensure_ascii=False)
        messages.append(_attached(f"workflow://{skill.name}", "application/json", document))
        return messages


def _about(skill: Skill | None) -> str:
    if skill is None:
        return ""
    outputs = json.dumps(skill.signature.output_schema, ensure_ascii=False)
    return f"\nIt is to be done by skill {skill.name}, whose outputs are: {outputs}\n"


def _said(text: str) -> types.PromptMessage:
    return types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))


def _attached(uri: str, mime_type: str, text: str) -> types.PromptMessage:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.PromptMessage(
        role="user", content=types.EmbeddedResource(type="resource", resource=contents)
    )
