"""Edits that experience suggests for a workflow in trouble, and what it says to a model that edits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from catalog.schema import is_valid
from catalog.tools import ToolId
from server.evolution.proposal import Proposal, cheapest, propose_one
from server.evolution.tool_faults import propose_swaps
from server.navigating.guidelines import Guideline
from server.planning.view import View, argument_schema
from skills_store.experience.unit import ExperienceUnit
from skills_store.workflow.edits import EditParameter, SwapTool
from skills_store.workflow.model import Node, json_pointer

__all__ = ["ExperienceHints"]

_MOST = 12
_SWAP_COST = 0.1
_CHOICE_COST = 0.3


@dataclass(frozen=True, slots=True)
class ExperienceHints:
    """Implements `server.evolution.proposer.Hints` over units and the records of calls."""

    units: Sequence[ExperienceUnit] = ()
    guidelines: Mapping[ToolId, Guideline] = field(default_factory=dict[ToolId, Guideline])

    def edits(self, view: View) -> Sequence[Proposal]:
        """Return swaps that came right before, then choices with which the tool worked."""
        faulty = {f.node for f in view.visible_faults if f.node is not None and f.evidence == "workflow"}
        nodes = [node for node in view.workflow.nodes if node.id in faulty and node.tool is not None]
        return cheapest(
            [p for node in nodes for p in (*self._swaps(view, node), *self._choices(view, node))], _MOST
        )

    def texts(self, view: View) -> Sequence[tuple[str, str]]:
        """Return what is known of the tools of the workflow and of like tasks: a unit and its line."""
        called = list(dict.fromkeys(node.tool for node in view.workflow.nodes if node.tool is not None))
        known = [
            (f"calls of {tool}", self.guidelines[tool].text) for tool in called if tool in self.guidelines
        ]
        return [*((unit.id, unit.text) for unit in self.units), *known]

    def _swaps(self, view: View, node: Node) -> Iterator[Proposal]:
        wanted = {
            unit.tools[0] for unit in self.units if unit.kind == "comparison" and unit.instead_of == node.tool
        }
        for proposal in propose_swaps(view, node) if wanted else ():
            edit = proposal.edits[0]
            if isinstance(edit, SwapTool) and edit.tool in wanted:
                yield propose_one(edit.model_copy(update={"because": "it came right before"}), _SWAP_COST)

    def _choices(self, view: View, node: Node) -> Iterator[Proposal]:
        known = self.guidelines.get(node.tool) if node.tool is not None else None
        for name, values in (known.choices if known is not None else {}).items():
            given = node.arguments.get(name)
            if name not in node.arguments or given in values:
                continue
            schema = argument_schema(view.tool(node), name)
            for place, value in enumerate(v for v in values if is_valid(schema, v)):
                edit = EditParameter(
                    node=node.id,
                    pointer=json_pointer(name),
                    value=value,
                    because=f"{name} worked with it before",
                )
                yield propose_one(edit, _CHOICE_COST + 0.1 * place)
