"""Skills out of the bank as files, and files of others into it: in `shadow`, until tests pass here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from catalog.tools import ToolId
from server.bank.admission.learning import holds_secret
from server.bank.context import Context
from server.bank.errors import NotSaved
from server.bank.exchange.standalone_files import standalone_files
from server.bank.using import require_skill, skill_report
from server.reports import ExportReport, ImportReport
from skills_store.errors import NotImportable, UnknownSkill
from skills_store.hints import derived_hints
from skills_store.interchange.arazzo import render_arazzo
from skills_store.interchange.arazzo_reading import is_arazzo, parse_arazzo
from skills_store.interchange.bundle import Imported, PortableVersion, parse_bundle, render_bundle
from skills_store.interchange.mermaid import render_mermaid
from skills_store.interchange.package_files import MAX_PACKAGE_BYTES, read_package_files
from skills_store.interchange.packages import parse_package
from skills_store.interchange.portable import portable, skill_digest
from skills_store.interchange.skill_md import agent_skill_name, render_package
from skills_store.skill import AdmissionVerdict, Pin, Provenance, Skill, ToolHints
from skills_store.workflow.hashing import content_hash, shape_hash

__all__ = ["FORMATS", "export_skill", "import_skill", "read_import"]

_YAML = (".yaml", ".yml")
_Rendering = Callable[[Skill, Sequence[Skill], Context], Mapping[str, bytes]]
_REASON = "imported; nothing has verified it here: `skillbank skills test {name}`"


def export_skill(name: str, version: int | None, format: str, context: Context) -> ExportReport:  # noqa: A002
    """Return the files of a skill in a format.

    Raises:
        UnknownSkill: no such skill or version, or one that it calls is gone.
        NotSaved: it holds a secret.
    """
    skill = require_skill(name, version, context)
    called = _called(skill, context)
    if any(holds_secret(one, context) for one in (skill, *called)):
        raise NotSaved(f"{name} holds a secret, so it is not exported")
    files = dict(FORMATS[format](skill, called, context))
    return ExportReport(
        name=skill.name, version=skill.version, format=format, digest=skill_digest(skill), files=files
    )


def _called(skill: Skill, context: Context) -> list[Skill]:
    """Return every version that a skill calls, those of its callees included, each once."""
    found: dict[tuple[str, int], Skill] = {}
    waiting = [skill]
    while waiting:
        for node in waiting.pop().workflow:
            if node.skill is None or (node.skill.name, node.skill.version) in found:
                continue
            inner = context.store.version(node.skill.name, node.skill.version)
            if inner is None:
                raise UnknownSkill(f"{skill.name} calls {node.target}, which is gone")
            found[inner.name, inner.version] = inner
            waiting.append(inner)
    return [found[key] for key in sorted(found)]


def _bundle(skill: Skill, called: Sequence[Skill], _context: Context) -> dict[str, bytes]:
    return {f"{skill.name}.skillbank.json": render_bundle(skill, called)}


def _package(skill: Skill, called: Sequence[Skill], _context: Context) -> dict[str, bytes]:
    folder = agent_skill_name(skill.name)
    return {f"{folder}/{path}": content for path, content in render_package(skill, called).items()}


def _arazzo(skill: Skill, _called: Sequence[Skill], _context: Context) -> dict[str, bytes]:
    return {f"{skill.name}.arazzo.json": render_arazzo(portable(skill), skill.version).encode()}


def _mermaid(skill: Skill, _called: Sequence[Skill], _context: Context) -> dict[str, bytes]:
    return {f"{skill.name}.mmd": render_mermaid(skill.workflow).encode()}


def _server(skill: Skill, called: Sequence[Skill], context: Context) -> dict[str, bytes]:
    folder = f"{agent_skill_name(skill.name)}-server"
    files = standalone_files(skill, called, context)
    return {f"{folder}/{path}": content for path, content in files.items()}


FORMATS: Mapping[str, _Rendering] = {
    "bundle": _bundle,
    "skill-md": _package,
    "arazzo": _arazzo,
    "mermaid": _mermaid,
    "server": _server,
}
"""By the name a person gives."""


def read_import(path: Path, contracts: Mapping[ToolId, str] | None = None) -> Imported:
    """Return the skill of a bundle, Arazzo description or package; nothing is executed or unpacked.

    Args:
        path: of the file or folder.
        contracts: hashes of the contracts known here, for tools that an Arazzo description pins none of.

    Raises:
        NotImportable: it is none of these, or holds what may not be taken in; says what.
    """
    try:
        if path.is_file() and not path.is_symlink() and (_is_json(path) or path.suffix in _YAML):
            if path.stat().st_size > MAX_PACKAGE_BYTES:
                raise NotImportable(f"{path} has more than {MAX_PACKAGE_BYTES} bytes")
            content = path.read_bytes()
            is_description = path.suffix in _YAML or is_arazzo(content)
            return parse_arazzo(content, contracts) if is_description else parse_bundle(content)
        return parse_package(read_package_files(path))
    except OSError as error:
        raise NotImportable(f"{path} cannot be read: {error.strerror or error}") from error


def _is_json(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(64).lstrip()[:1] == b"{"


def import_skill(imported: Imported, source: str, context: Context) -> ImportReport:
    """Keep an imported skill, and those it calls, as `shadow`.

    Raises:
        NotImportable: its name is taken by another skill.
    """
    for called in imported.calls:
        _check_version(called, context)
    kept = [_kept(one, source, context) for one in (*imported.calls, imported.skill)]
    skill = kept[-1]
    return ImportReport(
        skill=skill_report(skill, context),
        digest=skill_digest(skill),
        calls=tuple(f"{one.name}@{one.version}" for one in kept[:-1]),
    )


def _check_version(called: PortableVersion, context: Context) -> None:
    """Check that a called version can have the number here under which it is called.

    Raises:
        NotImportable: it cannot.
    """
    name, there = called.skill.name, context.store.version(called.skill.name, called.version)
    if there is None and called.version != 1:
        raise NotImportable(f"it calls {name}@{called.version}, and here {name} would begin with version 1")
    if there is not None and skill_digest(there) != called.digest:
        raise NotImportable(f"it calls {name}@{called.version}, and here that is another skill")


def _kept(one: PortableVersion, source: str, context: Context) -> Skill:
    there = context.store.versions(one.skill.name)
    same = [known for known in there if skill_digest(known) == one.digest]
    if same:
        return same[-1]
    if there:
        raise NotImportable(
            f"there is another skill {one.skill.name} here: `skillbank skills delete` it first"
        )
    skill = _skill(one, source, context)
    if holds_secret(skill, context):
        raise NotImportable(f"{one.skill.name} holds one of the secrets that are kept here")
    context.store.add_version(skill, expected_head=None)
    return skill


def _skill(one: PortableVersion, source: str, context: Context) -> Skill:
    """Return what was read as a skill of this bank: effects, pins and hints by its own operator's word."""
    given, effects, known = one.skill, context.effects, context.known()
    reason = _REASON.format(name=given.name)
    tools = [tool for pin in given.pins if (tool := known.get(pin.tool)) is not None]
    return Skill(
        name=given.name,
        version=1,
        state="shadow",
        reason=reason,
        title=given.title,
        description=given.description,
        workflow=given.workflow,
        content_hash=content_hash(given.workflow),
        shape_hash=shape_hash(given.workflow),
        signature=given.signature,
        tests=given.tests,
        pins=tuple(
            Pin(tool=pin.tool, contract_hash=pin.contract_hash, effect=effects.effect(pin.tool))
            for pin in given.pins
        ),
        hints=derived_hints(tools, effects) if len(tools) == len(given.pins) else ToolHints(),
        guidance=given.guidance,
        provenance=Provenance(task=given.task, imported_from=f"{source} ({one.digest})"),
        verdict=AdmissionVerdict(state="shadow", reason=reason),
        tags=given.tags,
        created_at=context.clock(),
    )
