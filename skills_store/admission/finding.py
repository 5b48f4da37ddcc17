"""One check of one gate with the best state it leaves open, and how findings are told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from catalog.canonical import JsonValue
from skills_store.evidence import UsedTool, VariedRun
from skills_store.skill import AdmissionCheck, Skill, SkillState

__all__ = ["Finding", "Gate", "approval", "costly_tools", "faultless", "listed", "on_inputs", "shown"]

Gate = Literal["duplicate", "interface", "function", "safety", "trivial"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A check and the best state it leaves open; `active` when it passed."""

    name: str
    gate: Gate
    leaves: SkillState
    detail: str
    inputs: JsonValue = None
    seconds: float = 0.0

    def to_check(self) -> AdmissionCheck:
        return AdmissionCheck(
            name=self.name,
            gate=self.gate,
            passed=self.leaves == "active",
            detail=self.detail,
            leaves=None if self.leaves == "active" else self.leaves,
            inputs=self.inputs,
            seconds=self.seconds,
        )


def faultless(
    name: str,
    gate: Gate,
    problems: list[str],
    *,
    leaves: SkillState = "shadow",
    inputs: JsonValue = None,
) -> Finding:
    shown: JsonValue = [*problems] if inputs is None else inputs
    return Finding(
        name, gate, leaves if problems else "active", "; ".join(problems) or "nothing found", shown
    )


def costly_tools(tools: Iterable[UsedTool]) -> list[UsedTool]:
    return [tool for tool in tools if not tool.may_repeat]


def listed(tools: Iterable[UsedTool]) -> str:
    return ", ".join(f"{tool.tool} ({tool.effect.value})" for tool in tools)


def shown(run: VariedRun) -> JsonValue:
    return {
        "inputs": dict(run.inputs),
        "changed": [*run.changed],
        "succeeded": run.succeeded,
        "outputs_changed": run.outputs_changed,
        "check_passed": run.check_passed,
    }


def on_inputs(run: VariedRun) -> str:
    return ", ".join(f"{name} = {run.inputs.get(name)!r}" for name in run.changed) or "equal inputs"


def approval(skill: Skill) -> str:
    """Return the command of a person who approves; a later version need not be the one in use."""
    version = f" --version {skill.version}" if skill.version > 1 else ""
    return f"`skillbank skills approve {skill.name}{version}`"
