"""Records that somebody chose: identifiers which neither the task says nor one place of an answer tells.

Which of several orders, items or cards was meant differs from task to task, and where it stood in an
answer that day says nothing of the next. So an identifier becomes an input where it was taken from
among several by its position, by a key that is itself an identifier, or from nowhere at all.

Paper: FlowEvo (compile; facts §3.8 step 2). Differs: the paper lifts only what the task says; a
constant identifier would make the skill act on the same record for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from server.compilation.places import Place
from skills_store.workflow.edits.places import set_place
from skills_store.workflow.model import Workflow, json_pointer
from skills_store.workflow.references import (
    ExpressionError,
    Scope,
    Unresolved,
    escape_literal,
    parse_reference,
    pointer_parts,
    resolve,
)

__all__ = ["open_choices", "record_places"]

_NAMES_RECORDS = re.compile(r"(?:^|_)(?:ids?|numbers?|codes?)$|(?:Ids?|Numbers?)$")
_IDENTIFIER = re.compile(r"(?=\S*\d{3})\S{4,64}")


def open_choices(workflow: Workflow, outputs: Mapping[str, JsonValue]) -> Workflow:
    """Return the workflow with the identifiers that were chosen among several as the literals they were.

    Args:
        workflow: what ran, its data flow recovered.
        outputs: full node outputs by id.
    """
    for node in workflow.nodes:
        arguments = node.arguments
        for argument, value in node.arguments.items():
            if not _NAMES_RECORDS.search(argument):
                continue
            items = value if isinstance(value, list) else [value]
            if any(_is_choice(item, outputs, is_listed=isinstance(value, list)) for item in items):
                arguments = set_place(arguments, json_pointer(argument), _literal(value, outputs))
        if arguments != node.arguments:
            workflow = workflow.replacing(node.model_copy(update={"arguments": arguments}))
    return workflow


def record_places(workflow: Workflow) -> Iterator[Place]:
    """Yield every argument that names records and holds nothing but literal identifiers."""
    for node in workflow.nodes:
        for argument, value in node.arguments.items():
            items = value if isinstance(value, list) else [value]
            if items and _NAMES_RECORDS.search(argument) and all(map(_is_identifier, items)):
                yield Place(node.id, argument, json_pointer(argument), value)


def _is_identifier(value: JsonValue) -> bool:
    is_literal = isinstance(value, str) and not value.startswith("$") and "{$" not in value
    return is_literal and _IDENTIFIER.fullmatch(str(value)) is not None


def _is_choice(value: JsonValue, outputs: Mapping[str, JsonValue], *, is_listed: bool) -> bool:
    """Return whether a reference takes one of several identifiers by where it stood."""
    if not (isinstance(value, str) and value.startswith("$nodes.")):
        return False
    reference = parse_reference(value)
    if reference.name not in outputs or not _is_identifier(_resolved(value, outputs)):
        return False
    whole = outputs[reference.name]
    for part in pointer_parts(reference.pointer):
        if isinstance(whole, list):
            if len(whole) > 1 and (is_listed or part != "0"):
                return True
            whole = whole[int(part)]
        elif isinstance(whole, dict):
            if _IDENTIFIER.fullmatch(part):
                return True
            whole = whole[part]
    return False


def _resolved(value: JsonValue, outputs: Mapping[str, JsonValue]) -> JsonValue:
    try:
        return resolve(value, Scope(outputs=outputs))
    except (Unresolved, ExpressionError):
        return None


def _literal(value: JsonValue, outputs: Mapping[str, JsonValue]) -> JsonValue:
    """Return an argument with its references resolved."""
    if isinstance(value, list):
        return [_literal(item, outputs) for item in value]
    found = _resolved(value, outputs)
    return value if found is None else escape_literal(found)
