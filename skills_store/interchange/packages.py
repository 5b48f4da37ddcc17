"""Reads a skill back from the files of an Agent Skill package; nothing of it is executed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue, ValidationError

from skills_store.errors import NotImportable
from skills_store.interchange.bundle import (
    Imported,
    PortableVersion,
    checked_import,
    read_json_file,
    said_of,
)
from skills_store.interchange.portable import PortableSkill
from skills_store.interchange.skill_md import METADATA_PREFIX

__all__ = ["parse_package"]

_VERSION = f"{METADATA_PREFIX}version: "


def parse_package(files: Mapping[str, bytes]) -> Imported:
    """Return the skill of a package, by its files.

    The prose of `SKILL.md` and `scripts/` are for other hosts and not read: the assets are what counts.

    Raises:
        NotImportable: a file is missing or malformed, or the digest does not fit.
    """
    if "assets/workflow.json" not in files:
        raise NotImportable(
            "it has no assets/workflow.json: its text may help a person, but there is nothing to run or test"
        )
    record = _object("assets/skill.json", files)
    digest = record.pop("digest", None)
    document = {
        **record,
        "workflow": _json("assets/workflow.json", files),
        "signature": _json("assets/schema.json", files),
        "tests": _json("assets/tests.json", files),
    }
    called = _json("assets/skills.json", files) if "assets/skills.json" in files else []
    try:
        skill = PortableSkill.model_validate(document)
        version = PortableVersion(version=_version(files), digest=str(digest), skill=skill)
        calls = [_called(entry) for entry in (called if isinstance(called, list) else [])]
    except ValidationError as error:
        raise NotImportable(said_of(error)) from error
    return checked_import(version, calls)


def _called(entry: JsonValue) -> PortableVersion:
    if not isinstance(entry, dict):
        raise NotImportable("assets/skills.json holds something that is no skill")
    return PortableVersion.model_validate(entry)


def _version(files: Mapping[str, bytes]) -> int:
    """Return the version that the head of `SKILL.md` says, 1 where it says none."""
    for line in files["SKILL.md"][:20_000].decode(errors="replace").splitlines():
        said = line.strip().removeprefix(_VERSION)
        if said != line.strip() and said.strip('"').isdecimal():
            return max(1, int(said.strip('"')[:6]))
    return 1


def _json(name: str, files: Mapping[str, bytes]) -> JsonValue:
    if name not in files:
        raise NotImportable(f"it has no {name}")
    return read_json_file(name, files[name])


def _object(name: str, files: Mapping[str, bytes]) -> dict[str, JsonValue]:
    value = _json(name, files)
    if not isinstance(value, dict):
        raise NotImportable(f"{name} is no JSON object")
    return cast("dict[str, JsonValue]", value)
