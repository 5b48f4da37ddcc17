"""A plan made anew from a task's words, clause by clause, without a model.

Each clause that orders something becomes a call: the tool by the words, numbers and inputs as the
clause says them, "it" and its like from the step before, a noun said again from the step about it.
Sound calls of a plan there is are kept where a clause means them.

Paper: EvoFlux (meta-guidance; facts §1.5). Differs: no model plans; the words of the task do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from catalog.schema import is_valid, types
from catalog.similarity import name_similarity, words
from catalog.tools import JsonSchema, Tool, ToolId
from server.planning.clause_tools import (
    choices_of,
    end_slots,
    required_of,
    said_choices,
    tool_for,
    unit_slots,
)
from server.planning.deterministic import inputs_schema
from server.planning.forms import form_named
from server.planning.literals import task_literals
from server.planning.readings import Answered, Wanted, reading_of
from server.planning.slots import Slot, fits
from server.planning.sources import argument_sources
from server.planning.spoken_steps import SpokenStep, is_pair, spoken_steps
from server.planning.units import listed_spelling, unit_spellings, with_kind
from server.planning.view import View, World, answers_of, argument_schema, references_in
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found, Reference
from skills_store.workflow.scan import scan

__all__ = ["plan_by_clauses"]

_PRONOUN = re.compile(
    r"^(?:|(?:it|that|this|them|these|those|the two)(?: there| both)?|the \w+ there"
    r"|its \w+( and .*)?|the (?:result|results|value))$",
    re.IGNORECASE,
)
_ORDINALS = ("first", "second", "third", "fourth")
_NUMERIC = frozenset({"number", "integer"})
_FILLERS = frozenset({"the", "a", "an", "of", "its", "their", "one", "ones", "each", "every", "both", "all"})


@dataclass(frozen=True, slots=True)
class _Done:
    """A step that has become a node, and by which words it can be meant."""

    node: Node
    tool: Tool
    about: frozenset[str]


@dataclass
class _Draft:
    """The plan as far as it has been made."""

    view: View
    done: list[_Done] = field(default_factory=list[_Done])
    used: set[str] = field(default_factory=set[str])
    """Ids of nodes of the plan there was that are kept."""
    hint: str = ""
    """What of a step is meant, where a clause only names a part of it."""
    subject: _Done | None = None
    """The step such a clause names; None: the last."""

    @property
    def world(self) -> World:
        return self.view.world

    def answer(self, step: _Done) -> tuple[JsonValue, bool]:
        """Return what a step's tool was seen to answer, None for nothing, and whether to such a call.

        A tool that is told what to do answers in another shape when it is told something else.
        """
        told = [name for name in required_of(step.tool) if choices_of(argument_schema(step.tool, name))]
        alike = [
            answer
            for node in self.view.workflow.nodes
            if node.tool == step.tool.id and node.id in self.view.outputs
            for answer in answers_of(node, self.view.outputs[node.id])
            if all(node.arguments.get(name) == step.node.arguments.get(name) for name in told)
        ]
        if alike:
            return alike[-1], True
        told = [name for name in told if "unit" not in words(name)]
        return self.view.seen_tools.get(step.tool.id), not told


def plan_by_clauses(view: View, wanted: Sequence[str]) -> Workflow | None:
    """Return the plan that a task's words say step by step; None where they say no two steps.

    Args:
        view: a plan there is of the task, and what its tools were seen to answer.
        wanted: names of the outputs.
    """
    steps = spoken_steps(view.world.task)
    chosen = [(step, tool_for(step, view)) for step in steps]
    if not chosen or not any(tool for _, tool in chosen):
        return None
    draft = _Draft(view)
    _keep_before(draft, {tool.id for _, tool in chosen if tool})
    for step, tool in chosen:
        if tool is None:
            draft.hint, draft.subject = step.said, _named(draft, _about(step.said))
        elif not _add(draft, step, tool):
            return None
    if len(draft.done) < 2:
        return None
    nodes = tuple(done.node for done in draft.done)
    return Workflow(
        name="plan", inputs=inputs_schema(view.world), nodes=nodes, outputs=_outputs(draft, wanted)
    )


def _keep_before(draft: _Draft, said: set[ToolId]) -> None:
    """Keep calls of the plan that no clause orders and that read only what is given: they bring the data."""
    for node in draft.view.workflow.nodes:
        tool = draft.view.tool(node)
        if tool is None or tool.id in said or not _is_sound(node, draft.view):
            continue
        if _number_slots(tool) or not draft.world.effect(tool.id).is_free:
            continue
        _keep(draft, node, tool, frozenset())


def _keep(draft: _Draft, node: Node, tool: Tool, about: frozenset[str]) -> None:
    read = {f.reference.name for value in node.arguments.values() for f in references_in(value)}
    named = frozenset(word for name in read for word in words(name))
    kept = node.model_copy(update={"expect": (), "after": (), "when": None})
    draft.done.append(_Done(kept, tool, about | named))
    draft.used.add(node.id)


def _is_sound(node: Node, view: View) -> bool:
    """Return whether a call of the plan is complete, reads only inputs and has no fault."""
    tool = view.tool(node)
    if tool is None or any(fault.node == node.id for fault in view.visible_faults):
        return False
    scanned = list(scan(dict(node.arguments)))
    found = [part.reference for part in scanned if isinstance(part, Found)]
    if len(found) < len(scanned):
        return False
    inputs = [ref for ref in found if ref.root == "inputs"]
    if any(_is_misfit(view.world, tool, name, value) for name, value in node.arguments.items()):
        return False
    return bool(inputs) and len(inputs) == len(found) and set(required_of(tool)) <= set(node.arguments)


def _is_misfit(world: World, tool: Tool, name: str, value: JsonValue) -> bool:
    """Return whether an argument reads a whole input that the tool does not take."""
    read = value[len("$inputs.") :] if isinstance(value, str) and value.startswith("$inputs.") else None
    return (
        read is not None
        and read in world.inputs
        and not fits(world.inputs[read], argument_schema(tool, name))
    )


def _number_slots(tool: Tool) -> list[str]:
    return [n for n in required_of(tool) if types(argument_schema(tool, n)) and _is_number(tool, n)]


def _is_number(tool: Tool, name: str) -> bool:
    return types(argument_schema(tool, name)) <= _NUMERIC


def _add(draft: _Draft, step: SpokenStep, tool: Tool) -> bool:
    """Put the call or calls of a clause into the draft; False where an argument has no source."""
    if kept := _kept(draft, step, tool):
        for node in kept:
            _keep(draft, node, tool, _about(step.noun))
        return True
    group = _group(draft) if step.of_each else []
    subjects: list[_Done | None] = [*group] if len(group) > 1 else [None]
    made: list[_Done] = []
    for subject in subjects:
        found = _made(draft, step, tool, subject, made)
        if found is None:
            return False
        made.append(found)
    draft.done.extend(made)
    draft.hint, draft.subject = "", None
    return True


def _kept(draft: _Draft, step: SpokenStep, tool: Tool) -> list[Node]:
    """Return sound calls of the plan that a clause means: of its tool, with the choices it says."""
    means_before = bool(draft.done) and _PRONOUN.match(step.noun) is not None and not step.of_each
    if (_number_slots(tool) and step.units is None) or means_before:
        return []
    choice, ends = said_choices(step, tool), _said_ends(step, tool, draft.world)
    found = [
        node
        for node in draft.view.workflow.nodes
        if node.tool == tool.id
        and node.id not in draft.used
        and node.for_each is None
        and _is_sound(node, draft.view)
        and all(node.arguments.get(name) == value for name, value in choice.items())
        and (step.units is None or _has_units(node, step.units))
        and all(node.arguments.get(name) == end for name, end in ends.items())
        and not (step.of_each and _reads_elements(node))
    ]
    return found if step.of_each else found[:1]


def _reads_elements(node: Node) -> bool:
    """Return whether a call reads one place of an input: right for a list of one length only."""
    return any(f.reference.pointer for value in node.arguments.values() for f in references_in(value))


def _has_units(node: Node, units: tuple[str, str]) -> bool:
    texts = [value for value in node.arguments.values() if isinstance(value, str)]
    return all(any(text in unit_spellings(unit) for text in texts) for unit in units)


def _group(draft: _Draft) -> list[_Done]:
    """Return the last steps that call one tool: what "each" and "both" mean."""
    found: list[_Done] = []
    for done in reversed(draft.done):
        if found and done.tool.id != found[0].tool.id:
            break
        found.insert(0, done)
    return found


def _made(
    draft: _Draft, step: SpokenStep, tool: Tool, subject: _Done | None, made: Sequence[_Done]
) -> _Done | None:
    arguments: dict[str, JsonValue] = {**said_choices(step, tool), **_said_units(step, tool)}
    arguments |= _said_ends(step, tool, draft.world)
    mapped: JsonValue = None
    slots = [name for name in required_of(tool) if name not in arguments and not _asks_kind(name)]
    slots = sorted(slots, key=lambda name: not _is_number(tool, name)) if step.units else slots
    slots = sorted(slots, key=lambda name: name in end_slots(tool)) if any(step.ends) else slots
    operands = step.operands if len(slots) > 1 or len(step.operands) < 2 else step.operands[:1]
    for which, (name, phrase) in enumerate(zip(slots, operands, strict=False)):
        schema = argument_schema(tool, name)
        if subject is not None:
            value = _read(draft, subject, schema, name)
        elif is_pair(operands):
            value = _one_of(draft, which, schema, name)
        else:
            value = _meant(draft, phrase, step, schema, name)
        is_list = _list_input(value, draft.world)
        if is_list and _is_number(tool, name) and not is_valid(schema, draft.world.inputs.get(is_list)):
            mapped, value = value, "$item"
        if value is not None:
            arguments[name] = value
    arguments |= _expression(step, tool, draft.world)
    node = Node(id=_fresh_id(draft, tool, made), tool=tool.id, for_each=mapped, arguments=arguments)
    filled = _filled(draft, node, tool, step)
    if filled is None:
        return None
    about = _about(step.noun) | (subject.about if subject is not None else _about(""))
    return _Done(filled, tool, about | _about(" ".join(map(str, said_choices(step, tool).values()))))


def _expression(step: SpokenStep, tool: Tool, world: World) -> dict[str, JsonValue]:
    """Return the argument that takes an expression, as the clause writes it over names of inputs."""
    found = re.search(r"\b(?:expression|formula|equation)\s+(\S.*)$", step.said, re.IGNORECASE)
    name = next((n for n in required_of(tool) if n.lower().startswith(("expr", "formula", "equation"))), None)
    if found is None or name is None:
        return {}
    text, count = re.subn(
        r"[A-Za-z_]\w*", lambda m: f"{{$inputs.{m[0]}}}" if m[0] in world.inputs else m[0], found[1].strip()
    )
    return {name: text} if count else {}


def _asks_kind(name: str) -> bool:
    return bool(set(words(name)) & {"type", "category", "kind", "unit"})


def _said_units(step: SpokenStep, tool: Tool) -> dict[str, JsonValue]:
    """Return the unit arguments of a clause that says from which unit to which."""
    units = unit_slots(tool)
    if step.units is None or len(units) != 2:
        return {}
    kinds = [name for name in required_of(tool) if set(words(name)) & {"type", "category", "kind"}]
    found: dict[str, JsonValue] = {
        name: listed_spelling(unit, choices_of(argument_schema(tool, name))) or unit
        for name, unit in zip(units, step.units, strict=True)
    }
    return with_kind({**found, **dict.fromkeys(kinds, "")})


def _said_ends(step: SpokenStep, tool: Tool, world: World) -> dict[str, JsonValue]:
    """Return the arguments for from what to what, by inputs of these values where there are such."""
    found: dict[str, JsonValue] = {}
    for end, name in zip(step.ends, end_slots(tool), strict=False):
        if end and is_valid(argument_schema(tool, name), end):
            given = [key for key, value in world.inputs.items() if value == end]
            found[name] = f"$inputs.{given[0]}" if len(given) == 1 else end
    return found


def _list_input(value: JsonValue, world: World) -> str | None:
    name = value[len("$inputs.") :] if isinstance(value, str) and value.startswith("$inputs.") else None
    return name if name and isinstance(world.inputs.get(name), list) else None


def _filled(draft: _Draft, node: Node, tool: Tool, step: SpokenStep) -> Node | None:
    """Return the node with its other required arguments from wherever they may come; None: from nowhere."""
    placed = Workflow(name="plan", inputs=inputs_schema(draft.world), nodes=(), outputs={})
    nodes = tuple(done.node for done in draft.done)
    for name in required_of(tool):
        if name in node.arguments:
            continue
        part = replace(draft.world, task=step.said)
        view = View(part, placed.model_copy(update={"nodes": (*nodes, node)}), {}, draft.view.seen_tools)
        taken = [repr(value) for value in node.arguments.values()]
        sources = argument_sources(Slot(node, name, argument_schema(tool, name)), view)
        free = next((s.value for s in sources if repr(s.value) not in taken), None)
        if free is None:
            return None
        node = node.model_copy(update={"arguments": {**node.arguments, name: free}})
    return node


def _fresh_id(draft: _Draft, tool: Tool, made: Sequence[_Done]) -> str:
    stem = re.sub(r"[^a-z0-9]+", "_", tool.id.tool.lower()).strip("_")[:40] or "step"
    taken = {done.node.id for done in (*draft.done, *made)} | {node.id for node in draft.view.workflow.nodes}
    first = len(draft.done) + len(made) + 1
    return next(name for i in range(first, first + 1000) if (name := f"s{i}_{stem}") not in taken)


def _about(phrase: str) -> frozenset[str]:
    return frozenset(word for word in words(phrase) if word not in _FILLERS and not word.isdigit())


def _meant(draft: _Draft, phrase: str, step: SpokenStep, schema: JsonSchema, slot: str) -> JsonValue:
    """Return what a phrase of a clause means: a number, an input, a step before; None: nothing known."""
    said = re.sub(r"^(?:the \w+ of|each of|both of)\s+", "", phrase.strip(), flags=re.IGNORECASE)
    if not draft.done or not _PRONOUN.match(said):
        if (value := _number(draft.world, said, schema)) is not None:
            return value
        if found := _input(draft, said, step, schema):
            return found
        if (named := _named(draft, _about(said) - _about(step.verb))) is not None:
            return _read(draft, named, schema, f"{slot} {said}")
    return _before(draft, schema, f"{slot} {said}")


def _one_of(draft: _Draft, which: int, schema: JsonSchema, slot: str) -> JsonValue:
    """Return one of the two that were spoken of: of the last two steps, else of what the last one gives."""
    group = _group(draft)
    if len(group) > 1:
        return _read(draft, group[max(-2, -len(group)) + which], schema, slot)
    return _read(draft, group[-1], schema, slot, which) if group else None


def _before(draft: _Draft, schema: JsonSchema, slot: str) -> JsonValue:
    """Return what the step before gives, or a list of what the steps before give, where one is wanted."""
    if not draft.done:
        return None
    group, items = _group(draft), schema.get("items")
    if len(group) > 1 and draft.subject is None and isinstance(items, dict):
        return [_read(draft, done, items, slot) for done in group]
    return _read(draft, draft.subject or draft.done[-1], schema, slot)


def _number(world: World, said: str, schema: JsonSchema) -> JsonValue:
    numbers = [x.value for x in task_literals(said) if x.kind == "number" and is_valid(schema, x.value)]
    if len(numbers) != 1:
        return None
    named = [name for name, value in world.inputs.items() if value == numbers[0]]
    return f"$inputs.{named[0]}" if len(named) == 1 else numbers[0]


def _input(draft: _Draft, said: str, step: SpokenStep, schema: JsonSchema) -> str | None:
    """Return the reference to the input that a phrase names, by its words or by the unit it is in."""
    best: tuple[float, str] | None = None
    stepped = _named(draft, _about(said), exact=True)
    for name, value in draft.world.inputs.items():
        fits = is_valid(schema, value) or (isinstance(value, list) and types(schema) <= _NUMERIC)
        if not fits:
            continue
        likeness = max((_alike(name, word) for word in _about(said)), default=0.0)
        if step.units and name.lower() in {s.lower() for s in unit_spellings(step.units[0])}:
            likeness = max(likeness, 0.9)
        if likeness >= 0.6 and (best is None or likeness > best[0]):
            best = likeness, f"$inputs.{name}"
    if best is not None and (stepped is None or best[0] > 0.95):
        return best[1]
    lists = [n for n, v in draft.world.inputs.items() if isinstance(v, list)]
    if not draft.done and not stepped and (step.of_each or _PRONOUN.match(said)) and len(lists) == 1:
        return f"$inputs.{lists[0]}"
    return None


def _alike(name: str, word: str) -> float:
    parts = words(name)
    begins = any(min(len(p), len(word)) >= 4 and (p.startswith(word) or word.startswith(p)) for p in parts)
    return max(0.8 if begins else 0.0, name_similarity(name, word))


def _named(draft: _Draft, about: frozenset[str], *, exact: bool = False) -> _Done | None:
    """Return the last step about what is named; a step told by more of the words goes before."""
    least = len(about) if exact else 1
    ranked = [(len(done.about & about), place) for place, done in enumerate(draft.done)]
    best = max(ranked, default=(0, 0))
    return draft.done[best[1]] if about and best[0] >= max(1, least) else None


def _read(draft: _Draft, step: _Done, schema: JsonSchema, slot: str, which: int = 0) -> JsonValue:
    """Return how what a step answers is read where a schema wants something."""
    answer, is_alike = draft.answer(step)
    is_hinted = step is draft.subject or (draft.subject is None and step is draft.done[-1])
    hint = f"{slot} {draft.hint}" if is_hinted else slot
    wanted = Wanted(schema, hint, draft.world.task, which)
    answered = Answered(step.tool, answer, is_alike=is_alike, mapped=step.node.for_each is not None)
    return reading_of(Reference("nodes", step.node.id), answered, wanted)


def _outputs(draft: _Draft, wanted: Sequence[str]) -> dict[str, JsonValue]:
    outputs: dict[str, JsonValue] = {}
    form = form_named(draft.world.task)
    schema: JsonSchema = {"type": "string", "description": form} if form else {}
    for name in wanted or ("result",):
        named = _named(draft, frozenset(words(name))) if len(wanted) > 1 else None
        outputs[name] = _read(draft, named or _in_turn(draft, name) or draft.done[-1], schema, name)
    return outputs


def _in_turn(draft: _Draft, name: str) -> _Done | None:
    """Return the step that an output counts by its name, of the last ones that call one tool."""
    counted = [place for place, word in enumerate(_ORDINALS) if word in words(name)]
    group = _group(draft)
    return group[counted[0]] if counted and 1 < len(group) > counted[0] else None
