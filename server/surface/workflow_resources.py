"""Workflows of skills as resources: the document as JSON, the graph as Mermaid, and an index of skills."""

from __future__ import annotations

import mcp.types as types
from pydantic import JsonValue

from server.surface.port import BankPort
from server.surface.sources import FOR_EVER_MS, JSON_TYPE, Wanted, json_contents, json_resource, text_contents
from skills_store.interchange.mermaid import render_mermaid
from skills_store.skill import Skill

__all__ = ["WorkflowResources"]

_SCHEME = "workflow://"
_INDEX = "workflow://all-skills"
_MERMAID = "mermaid"
_MERMAID_TYPE = "text/vnd.mermaid"
_PLACES = ("", "/mermaid", "/versions/{version}", "/versions/{version}/mermaid")


def _template(place: str) -> types.ResourceTemplate:
    of = "one version of a skill" if "version" in place else "a skill, the version in use"
    is_drawn = place.endswith(_MERMAID)
    return types.ResourceTemplate(
        uri_template=f"{_SCHEME}{{skill}}{place}",
        name=f"workflow{place.replace('/', ' ').replace('{version}', '').rstrip()}".replace("  ", " "),
        description=f"The workflow of {of}, {'drawn as a Mermaid flowchart' if is_drawn else 'as JSON'}.",
        mime_type=_MERMAID_TYPE if is_drawn else JSON_TYPE,
    )


_TEMPLATES = [_template(place) for place in _PLACES]


class WorkflowResources:
    """The workflows behind the skills of a bank, whatever their state."""

    def __init__(self, bank: BankPort) -> None:
        self._bank = bank

    def resources(self) -> list[types.Resource]:
        """Return the index of skills."""
        return [
            json_resource(
                _INDEX,
                "all skills",
                "Skills of the bank",
                "Every skill with its state, versions and the addresses of its workflow.",
            )
        ]

    def templates(self) -> list[types.ResourceTemplate]:
        """Return the templates of workflows."""
        return _TEMPLATES

    async def read(self, uri: str) -> types.ReadResourceResult | None:
        """Return the index, or a workflow as JSON or Mermaid."""
        if uri == _INDEX:
            listed: list[JsonValue] = [self._entry(skill) for skill in self._bank.skill_heads()]
            return json_contents(uri, {"skills": listed})
        if not uri.startswith(_SCHEME):
            return None
        match uri.removeprefix(_SCHEME).split("/"):
            case [name]:
                return _document(uri, self._find(name))
            case [name, last] if last == _MERMAID:
                return _drawn(uri, self._find(name))
            case [name, "versions", version]:
                return _document(uri, self._find(name, version), ttl_ms=FOR_EVER_MS)
            case [name, "versions", version, last] if last == _MERMAID:
                return _drawn(uri, self._find(name, version), ttl_ms=FOR_EVER_MS)
            case _:
                return None

    def complete(self, wanted: Wanted) -> list[str] | None:
        """Return names of skills, and the versions of one."""
        if not wanted.is_of(_TEMPLATES):
            return None
        if wanted.argument == "version":
            return [str(one.version) for one in self._bank.skill_versions(wanted.others.get("skill", ""))]
        return [skill.name for skill in self._bank.skill_heads()]

    def _find(self, name: str, version: str | None = None) -> Skill | None:
        if version is None:
            return next((skill for skill in self._bank.skill_heads() if skill.name == name), None)
        return next((one for one in self._bank.skill_versions(name) if str(one.version) == version), None)

    def _entry(self, skill: Skill) -> dict[str, JsonValue]:
        address = f"{_SCHEME}{skill.name}"
        return {
            "name": skill.name,
            "state": skill.state,
            "version": skill.version,
            "versions": [one.version for one in self._bank.skill_versions(skill.name)],
            "description": skill.description,
            "workflow": address,
            "drawn": f"{address}/{_MERMAID}",
        }


def _document(uri: str, skill: Skill | None, *, ttl_ms: int = 0) -> types.ReadResourceResult | None:
    if skill is None:
        return None
    return json_contents(uri, skill.workflow.to_json(), ttl_ms=ttl_ms)


def _drawn(uri: str, skill: Skill | None, *, ttl_ms: int = 0) -> types.ReadResourceResult | None:
    if skill is None:
        return None
    return text_contents(uri, render_mermaid(skill.workflow), _MERMAID_TYPE, ttl_ms=ttl_ms)
