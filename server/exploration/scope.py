"""Which tools of a server may be explored, by the one effect policy, and why the others may not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.effect_profile import propose_effect
from catalog.effects import Activity, EffectTable, Reset, Verdict, decide
from catalog.tools import Tool

__all__ = ["ExplorationScope", "exploration_scope"]

_NEVER = frozenset({Verdict.ASK, Verdict.REFUSE})


@dataclass(frozen=True, slots=True)
class ExplorationScope:
    """What may be called, and what is never called, each with its reason by tool name."""

    server: str
    reset: Reset
    allowed: tuple[Tool, ...]
    withheld: Mapping[str, str]
    changing: frozenset[str] = frozenset()
    """Of the allowed, those whose calls may change what later ones answer."""

    @property
    def is_stateless(self) -> bool:
        """Whether nothing that is called changes what later calls answer."""
        return self.reset is Reset.NONE

    def allows(self, tool: str) -> bool:
        """Return whether a tool of this name may be called."""
        return any(known.id.tool == tool for known in self.allowed)


def exploration_scope(server: str, tools: Iterable[Tool], effects: EffectTable) -> ExplorationScope:
    """Return what the effect policy lets an exploration call (`CONTRACTS`, Effects, third row).

    Pure and read tools, and on a resettable server all of them, in processes of their own. A tool
    that writes or is unknown on any other server is never called, whatever consent there is.
    """
    reset = effects.reset_mode(server)
    allowed: list[Tool] = []
    withheld: dict[str, str] = {}
    for tool in sorted(tools, key=lambda tool: tool.id.tool):
        decision = decide(effects.effect(tool.id), reset, Activity.REPLAY)
        if decision.verdict in _NEVER:
            withheld[tool.id.tool] = decision.reason
        else:
            allowed.append(tool)
    changing = frozenset(tool.id.tool for tool in allowed if _may_change(tool, effects))
    return ExplorationScope(server, reset, tuple(allowed), withheld, changing)


def _may_change(tool: Tool, effects: EffectTable) -> bool:
    """Return whether a tool may change its server: neither its class nor its words say that it looks."""
    return not effects.effect(tool.id).is_free and not propose_effect(tool).effect.is_free
