"""Which active skill a task goes to directly, and which of its inputs the task leaves open.

Paper: FlowEvo (democase_sql adapter, route; facts §3.4 and §3.8 step 4): a direct run needs a like
signature, every input bound, no veto, and a margin before the next candidate.
Differs: like means word for word, small talk aside, and equal in every value that no input takes,
since a near miss (Jaccard >= 0.85 in the paper) answers another question; what a check then
refuses falls back to a plan in the same episode. The margin is one of trust, since the words of
several candidates are the same then; before that, what each was right or wrong with decides
(facts §3.2, negative preconditions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from catalog.schema import coerce, is_valid
from server.planning.task_pieces import look
from server.planning.task_reading import read_as
from skills_store.skill import Skill

__all__ = ["Choice", "Direct", "Trust", "choose_route", "example_of", "match_skill"]

_MARGIN = 0.2
"""By how much one of several skills for a task must be trusted more to be the one."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What use has shown of a skill."""

    share: float = 0.5
    """How often it came out right, less what speaks against it, in [0, 1]."""
    veto: str = ""
    """Why it is not to be run without a person's word, empty when nothing speaks against it."""


@dataclass(frozen=True, slots=True)
class Direct:
    """A skill that is this task's, with its inputs as far as they are bound. `reasons` say why."""

    skill: Skill
    inputs: dict[str, JsonValue]
    reasons: tuple[str, ...]
    missing: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Inputs without a value, each with what the task says in its place, None where it says nothing."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The skill to run directly, None to plan. `reasons` say why."""

    direct: Direct | None
    reasons: tuple[str, ...]


def choose_route(
    task: str,
    inputs: Mapping[str, JsonValue],
    skills: Iterable[Skill],
    trust: Callable[[Skill], Trust] | None = None,
    shown: Callable[[Direct], bool | None] | None = None,
    *,
    is_asked_for: bool = False,
) -> Choice:
    """Return the skill to run directly: active, this task's, not vetoed, and clearly the one.

    One whose inputs the task leaves open is chosen only where no other has all of them.

    Args:
        task: in a person's words.
        inputs: given by name.
        skills: heads, in any state.
        trust: what use has shown of a skill; None: nothing yet.
        shown: whether a skill was right with the words it would be given now, or wrong, or neither
            (None): skills that were wrong are left out, and those that were right go first.
        is_asked_for: whether a person wants the direct route, against a veto too.
    """
    matched = [found for skill in skills if (found := match_skill(task, inputs, skill)) is not None]
    usable = [found for found in matched if found.skill.state == "active"]
    candidates = [found for found in usable if not found.missing] or usable
    if not candidates:
        resting = [f"{found.skill.name} is this task's, but it is {found.skill.state}" for found in matched]
        return Choice(None, ("no active skill is this task's", *resting))
    known = {found.skill.name: (trust(found.skill) if trust else Trust()) for found in candidates}
    allowed = [found for found in candidates if is_asked_for or not known[found.skill.name].veto]
    if not allowed:
        return Choice(
            None, tuple(f"{found.skill.name}: {known[found.skill.name].veto}" for found in candidates)
        )
    if shown is not None:
        with_words = [(found, shown(found)) for found in allowed]
        fit = [found for found, was_right in with_words if was_right is not False or is_asked_for]
        if not fit:
            return Choice(None, tuple(f"{found.skill.name} was wrong with these words" for found in allowed))
        allowed = [found for found, was_right in with_words if was_right] or fit
    ranked = sorted(allowed, key=lambda found: (-known[found.skill.name].share, found.skill.name))
    first = ranked[0]
    if len(ranked) > 1 and known[first.skill.name].share - known[ranked[1].skill.name].share < _MARGIN:
        names = ", ".join(sorted(found.skill.name for found in ranked))
        return Choice(None, (f"several skills are this task's and none is clearly better: {names}",))
    others = [f"trusted more than {other.skill.name}" for other in ranked[1:]]
    veto = known[first.skill.name].veto
    against = [f"asked for, although {veto}"] if veto else []
    return Choice(first, (*first.reasons, *others, *against))


def match_skill(task: str, inputs: Mapping[str, JsonValue], skill: Skill) -> Direct | None:
    """Return a skill with the values a task gives its inputs, None when the task is another."""
    own, properties = skill.provenance.task, _properties(skill)
    if not own or not _has_original(skill) or inputs.keys() - properties.keys():
        return None
    read = read_as(task, own, example_of(skill))
    if read is None or any(look(inputs[n]) != look(v) for n, v in read.values.items() if n in inputs):
        return None
    coerced, _ = coerce(skill.signature.input_schema, {**read.values, **inputs})
    bound = coerced if isinstance(coerced, dict) else {}
    missing = _missing(skill, bound, {n: said for n, said in read.instead.items() if n not in inputs})
    if not missing and not is_valid(skill.signature.input_schema, bound):
        return None
    said = "its task is this one with other values" if bound else "its task is this one"
    complete = "every input is bound" if not missing else f"the task does not give {', '.join(missing)}"
    reasons = (f"skill {skill.name}@{skill.version} is {skill.state}", said, complete)
    return Direct(skill, bound, reasons, missing)


def example_of(skill: Skill) -> Mapping[str, JsonValue]:
    """Return the inputs with which a skill's own task was solved, empty where that is not kept."""
    originals = [test.inputs for test in skill.tests if test.kind == "original"]
    return originals[0] if originals else {}


def _has_original(skill: Skill) -> bool:
    return any(test.kind == "original" for test in skill.tests)


def _missing(
    skill: Skill, bound: Mapping[str, JsonValue], instead: Mapping[str, str]
) -> dict[str, str | None]:
    required = skill.signature.input_schema.get("required")
    names = [str(name) for name in required] if isinstance(required, list) else []
    absent = [name for name in names if name not in bound]
    return {name: instead.get(name) for name in (*absent, *(n for n in instead if n not in absent))}


def _properties(skill: Skill) -> Mapping[str, JsonValue]:
    properties = skill.signature.input_schema.get("properties")
    return properties if isinstance(properties, dict) else {}
