"""Auditing a skill in use: its own tests again in fresh processes, where nobody waits for the answer."""

from __future__ import annotations

from catalog.tools import ToolId
from server.bank.admission.proving import replayer
from server.bank.context import Context
from server.bank.drift import missing_servers
from server.bank.running import servers_of
from server.progress import Progress
from skills_store.episodes import Audit
from skills_store.evidence import ReplayResult
from skills_store.skill import Skill

__all__ = ["audit_skill", "unseen_tools"]

_SHOWN = 3


async def audit_skill(skill: Skill, context: Context) -> Audit:
    """Run a skill's tests again, and return and keep what came of it; nothing is moved.

    A test that the world stopped, or that the effect policy lets never run again, says nothing.
    """
    context.progress(Progress("curate", f"auditing {skill.name}@{skill.version} in fresh processes"))
    passed, detail = await _tried(skill, context)
    audit = Audit(skill.name, skill.version, "audit", passed, detail, context.clock())
    context.store.record_audit(audit)
    return audit


def unseen_tools(skill: Skill, context: Context) -> list[ToolId]:
    """Return the tools of a skill that changed and that nobody has looked at since."""
    return sorted({pin.tool for pin in skill.pins} & context.effects.changed)


async def _tried(skill: Skill, context: Context) -> tuple[bool | None, str]:
    if missing := missing_servers(skill, context):
        return None, f"{', '.join(missing)} is not configured"
    if unseen := unseen_tools(skill, context):
        return None, f"{', '.join(map(str, unseen))} changed and nobody has looked at it since"
    if not skill.tests:
        return None, "it has no tests"
    snapshot = await context.snapshot(servers_of(skill.workflow, context))
    async with replayer(snapshot, context, skill).sharing() as runner:
        return _judged([await runner.replay(skill, test) for test in skill.tests])


def _judged(results: list[ReplayResult]) -> tuple[bool | None, str]:
    wrong = [f"{r.test}: {r.detail}" for r in results if r.possible and not r.passed]
    if wrong:
        more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        return False, "; ".join(wrong[:_SHOWN]) + more
    ran = [r for r in results if r.possible]
    if not ran:
        return None, f"no test could be run: {results[0].detail}"
    return True, f"{len(ran)} of {len(results)} tests gave the recorded outputs"
