"""The lineage of a search as a person or a program reads it: who came from whom by which edits."""

from __future__ import annotations

import json
from collections.abc import Sequence

from catalog.plain_text import plain_text
from server.reports import CandidateRecord

__all__ = ["lineage_json", "lineage_mermaid"]

_LABEL = 60
_SHORT = 8


def lineage_json(lineage: Sequence[CandidateRecord], best: str | None) -> str:
    """Return candidates, edges and the best one as JSON text."""
    document = {
        "best": best,
        "candidates": [record.model_dump(mode="json") for record in lineage],
        "edges": [
            {"from": r.parent, "to": r.id, "edits": list(r.edits)} for r in lineage if r.parent is not None
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def lineage_mermaid(lineage: Sequence[CandidateRecord], best: str | None) -> str:
    """Return a Mermaid flowchart, one box a candidate, what led to the best one drawn strong."""
    names = {record.id: f"c{place}" for place, record in enumerate(lineage)}
    led = _leading(lineage, best)
    lines = ["flowchart TD"]
    lines += [f'  {names[record.id]}["{_label(record)}"]:::{record.status}' for record in lineage]
    for record in lineage:
        if record.parent in names:
            arrow = "==>" if record.id in led else "-->"
            edits = _text("; ".join(record.edits))
            lines.append(f'  {names[record.parent]} {arrow}|"{edits}"| {names[record.id]}')
    if best in names:
        lines.append(f"  style {names[best]} stroke-width:4px")
    lines += [f"  classDef {status} fill:{colour}" for status, colour in _COLOURS.items()]
    return "\n".join(lines) + "\n"


def _leading(lineage: Sequence[CandidateRecord], best: str | None) -> set[str]:
    parents = {record.id: record.parent for record in lineage}
    led: set[str] = set()
    while best is not None and best in parents and best not in led:
        led.add(best)
        best = parents[best]
    return led


def _label(record: CandidateRecord) -> str:
    short = record.id.rpartition(":")[2][:_SHORT]
    made = f"{record.mode} {record.generation}" if record.generation else record.mode
    said = f"{made}: {record.status.replace('_', ' ')}, {record.scored_by} {record.score:.2f}"
    wrong = _text(record.faults[0].message) if record.faults else ""
    return "<br/>".join(part for part in (short, said, wrong) if part)


def _text(text: str) -> str:
    """Return text that cannot end a label."""
    plain = plain_text(text, _LABEL).replace("\n", " ")
    for sign, code in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("|", "#124;")):
        plain = plain.replace(sign, code)
    return plain


_COLOURS = {
    "verified": "#cfe8cf",
    "executed": "#fdf3c7",
    "failed": "#f6d5c3",
    "static_faults": "#e6e6e6",
}
