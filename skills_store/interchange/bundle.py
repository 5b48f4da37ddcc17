"""A skill as one JSON file for another bank, with every skill it calls and a digest over each.

What is read is a stranger's until its digests hold; what it claims of itself is never believed beyond
that. Where it lands is `server.bank.exchange.exchanging`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from catalog.canonical import canonical_json
from skills_store.errors import NotImportable
from skills_store.interchange.portable import PortableSkill, json_text, portable
from skills_store.skill import Skill

__all__ = [
    "MAX_BUNDLE_BYTES",
    "Imported",
    "PortableVersion",
    "checked_import",
    "parse_bundle",
    "render_bundle",
]

MAX_BUNDLE_BYTES = 16 << 20
_MOST_CALLED = 50
_DEEPEST = 100
_FORMAT = "skillbank-bundle"


class PortableVersion(BaseModel):
    """A version of a skill as it travels, with the digest it left with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = Field(ge=1)
    digest: str
    skill: PortableSkill


class _Bundle(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["skillbank-bundle"]
    format_version: Literal[1]
    skill: PortableVersion
    calls: tuple[PortableVersion, ...] = Field(default=(), max_length=_MOST_CALLED)


@dataclass(frozen=True, slots=True)
class Imported:
    """A skill that was read, and the versions it calls."""

    skill: PortableVersion
    calls: tuple[PortableVersion, ...] = ()


def render_bundle(skill: Skill, called: Sequence[Skill] = ()) -> bytes:
    """Return the bundle of a skill.

    Args:
        skill: to be exported.
        called: the versions that its workflow calls, and those that they call.
    """
    calls: list[JsonValue] = [_version(other) for other in called]
    document: dict[str, JsonValue] = {
        "format": _FORMAT,
        "format_version": 1,
        "skill": _version(skill),
        "calls": calls,
    }
    return json_text(document).encode()


def _version(skill: Skill) -> dict[str, JsonValue]:
    one = portable(skill)
    return {"version": skill.version, "digest": one.digest, "skill": one.to_json()}


def parse_bundle(content: bytes) -> Imported:
    """Return what a bundle holds.

    Raises:
        NotImportable: it is no bundle, too large, or a digest does not fit.
    """
    if len(content) > MAX_BUNDLE_BYTES:
        raise NotImportable(f"it has {len(content)} bytes; at most {MAX_BUNDLE_BYTES}")
    document = read_json_file("the bundle", content)
    try:
        bundle = _Bundle.model_validate(document)
    except ValidationError as error:
        raise NotImportable(said_of(error)) from error
    return checked_import(bundle.skill, bundle.calls)


def checked_import(skill: PortableVersion, calls: Sequence[PortableVersion]) -> Imported:
    """Return versions whose digests fit, and that call nothing that did not come with them.

    Raises:
        NotImportable: a digest does not fit, or a called skill is missing.
    """
    for one in (skill, *calls):
        if one.digest != one.skill.digest:
            raise NotImportable(
                f"{one.skill.name}: its digest is {one.skill.digest}, the file says {one.digest}:"
                " it was changed after it was exported"
            )
    for one in (skill, *calls):
        pinned = {pin.tool for pin in one.skill.pins}
        if unpinned := [tool for node in one.skill.workflow for tool in node.tools if tool not in pinned]:
            raise NotImportable(f"{one.skill.name} calls {unpinned[0]} without a pin on its contract")
    there = {(one.skill.name, one.version) for one in calls}
    for one in (skill, *calls):
        for node in one.skill.workflow:
            if node.skill is not None and (node.skill.name, node.skill.version) not in there:
                raise NotImportable(f"{one.skill.name} calls {node.target}, which did not come with it")
    return Imported(skill, tuple(calls))


def read_json_file(name: str, content: bytes) -> JsonValue:
    """Return the JSON of a file of strangers.

    Raises:
        NotImportable: it is no JSON, nested too deep, or holds a number that JSON does not have.
    """
    try:
        value = cast("JsonValue", json.loads(content, parse_constant=_refuse))
        if _depth(value) > _DEEPEST:
            raise ValueError(f"it is nested more than {_DEEPEST} deep")
        canonical_json(value)
    except (ValueError, RecursionError) as error:
        raise NotImportable(f"{name} is no JSON: {error}") from error
    return value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not allowed")


def _depth(value: JsonValue) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        part, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(part, dict):
            waiting.extend((item, depth + 1) for item in part.values())
        elif isinstance(part, list):
            waiting.extend((item, depth + 1) for item in part)
    return deepest


def said_of(error: ValidationError) -> str:
    """Return the first problem of a document in one sentence."""
    problem = error.errors(include_url=False)[0]
    place = "/".join(map(str, problem["loc"])) or "the document"
    return f"{place}: {str(problem['msg']).removeprefix('Value error, ')}"
