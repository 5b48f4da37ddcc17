"""What a compiled workflow has at each place of the calls it was made of, against the ground truth.

A place is a scalar argument of one call of the session. Names do not matter: inputs are compared by
which places share one, data flow by the calls it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from server.bench.sessions import Session
from server.planning.literals import mentions
from skills_store.skill import RecordedCall
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found, is_selector, pointer_parts
from skills_store.workflow.scan import scan

__all__ = ["Comparison", "Place", "Role", "compared", "roles_of"]

Place = tuple[int, str]
"""Number of the call in the session, and pointer into its arguments."""


@dataclass(frozen=True, slots=True)
class Role:
    """What stands at a place: inputs by name and calls by number; neither for a constant."""

    inputs: frozenset[str] = frozenset()
    calls: frozenset[int] = frozenset()

    @property
    def is_constant(self) -> bool:
        return not self.inputs and not self.calls


@dataclass(frozen=True, slots=True)
class Comparison:
    """One compiled workflow against the ground truth of its session."""

    inputs_exact: bool
    """The same places are inputs, and the same share one; constants that the task says left out."""
    links_exact: bool
    """The same places are data flow, from the same calls."""
    over: int
    """Places that are inputs and should be constants or data flow; what the task says left out."""
    said_constants: int
    """Constants of the family that its task says and that became inputs: one run cannot tell."""
    under: int
    """Places that are constants and should be inputs or data flow."""
    wrong_links: int
    """Places that are data flow from another call than they should be, or should be none."""
    places: int
    """Places that are inputs or data flow in truth."""
    lost_calls: int
    """Calls of the session that the workflow does not make."""


def roles_of(workflow: Workflow, recorded: Sequence[RecordedCall], session: Session) -> dict[Place, Role]:
    """Return what a workflow has at the places of the calls that it makes.

    Args:
        workflow: compiled from the session.
        recorded: the session's calls under the workflow's nodes.
        session: the calls.
    """
    made = _matched(recorded, session)
    calls = {
        node.id: [number for number, call in made.items() if call.node == node.id] for node in workflow.nodes
    }
    found: dict[Place, Role] = {}
    for number, call in made.items():
        node = workflow.node(call.node)
        if node is None:
            continue
        for pointer in session.calls[number].leaves:
            found[number, pointer] = _role(node, pointer, calls, workflow)
    return found


def _matched(recorded: Sequence[RecordedCall], session: Session) -> dict[int, RecordedCall]:
    matched: dict[int, RecordedCall] = {}
    for call in recorded:
        for number, own in enumerate(session.calls):
            if number not in matched and own.tool == call.tool and own.arguments == call.arguments:
                matched[number] = call
                break
    return matched


def _role(node: Node, pointer: str, calls: Mapping[str, list[int]], workflow: Workflow) -> Role:
    value: JsonValue = node.arguments
    parts = pointer_parts(pointer)
    rest: tuple[str, ...] = ()
    for at, part in enumerate(parts):
        if isinstance(value, dict) and not is_selector(value) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            rest = tuple(parts[at:])
            break
    return _read(value, rest, node, calls, workflow)


def _read(
    value: JsonValue, rest: tuple[str, ...], node: Node, calls: Mapping[str, list[int]], workflow: Workflow
) -> Role:
    inputs, numbers = set[str](), set[int]()
    for found in scan(value):
        if not isinstance(found, Found):
            continue
        reference = found.reference
        if reference.root == "inputs":
            inputs.add(reference.name)
        elif reference.root == "nodes":
            numbers |= _calls_read(reference.name, reference.pointer, rest, calls, workflow)
        elif node.for_each is not None:
            role = _read(node.for_each, (), node.model_copy(update={"for_each": None}), calls, workflow)
            inputs |= role.inputs
            numbers |= role.calls
    return Role(frozenset(inputs), frozenset(numbers))


def _calls_read(
    name: str, pointer: str, rest: tuple[str, ...], calls: Mapping[str, list[int]], workflow: Workflow
) -> set[int]:
    node, own = workflow.node(name), calls.get(name, [])
    if node is None or node.for_each is None:
        return set(own)
    at = next(iter((*pointer_parts(pointer), *rest)), "")
    return {own[int(at)]} if at.isdecimal() and int(at) < len(own) else set(own)


def compared(roles: Mapping[Place, Role], session: Session) -> Comparison:
    """Return how what stands at the places compares with what should."""
    task = session.task
    over = said = under = wrong = places = 0
    by_given: dict[frozenset[str], set[frozenset[str]]] = {}
    by_input: dict[frozenset[str], set[frozenset[str]]] = {}
    made = {number for number, _ in roles}
    inputs_exact = True
    for number, call in enumerate(session.calls):
        for pointer, truth in call.leaves.items():
            is_constant = not truth.given and not truth.calls
            places += not is_constant
            role = roles.get((number, pointer))
            if role is None:
                if not _is_echo(number, session, made):
                    under += not is_constant
                    inputs_exact = inputs_exact and not truth.given
                continue
            under += role.is_constant and not is_constant
            wrong += not role.is_constant and not is_constant and role.calls != truth.calls
            wrong += bool(role.calls) and is_constant
            if is_constant and role.inputs and not role.calls and mentions(task, truth.value):
                said += 1
                continue
            over += bool(role.inputs) and not truth.given
            if bool(role.inputs) != bool(truth.given):
                inputs_exact = False
            elif truth.given:
                by_given.setdefault(truth.given, set()).add(role.inputs)
                by_input.setdefault(role.inputs, set()).add(truth.given)
    one_to_one = all(len(other) == 1 for table in (by_given, by_input) for other in table.values())
    lost = sum(
        number not in made and not _is_echo(number, session, made) for number in range(len(session.calls))
    )
    return Comparison(
        inputs_exact=inputs_exact and one_to_one,
        links_exact=not wrong and not _missing_links(roles, session, made),
        over=over,
        said_constants=said,
        under=under,
        wrong_links=wrong,
        places=places,
        lost_calls=lost,
    )


def _missing_links(roles: Mapping[Place, Role], session: Session, made: set[int]) -> bool:
    return any(
        truth.calls and roles.get((number, pointer), Role()).calls != truth.calls
        for number, call in enumerate(session.calls)
        for pointer, truth in call.leaves.items()
        if not _is_echo(number, session, made)
    )


def _is_echo(number: int, session: Session, made: set[int]) -> bool:
    """Return whether a call that is not made again only repeats one that is."""
    call = session.calls[number]
    return number not in made and any(
        session.calls[other].tool == call.tool and session.calls[other].arguments == call.arguments
        for other in made
    )
