"""Admitted skills as files: each a SKILL.md package under an address of its own, old versions beside it.

`skill://{name}/…` is the version in use, `skill://versions/{version}/{name}/…` any version. The last
folder is the name that the package itself says, with hyphens. What the files hold is
`skills_store.interchange`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote

import mcp.types as types
from pydantic import JsonValue

from server.surface.port import BankPort
from server.surface.sources import FOR_EVER_MS, Wanted, text_contents
from skills_store.interchange.skill_md import agent_skill_name, frontmatter, render_package
from skills_store.skill import Skill, SkillState

__all__ = ["Package", "SkillPackages"]

_SCHEME = "skill://"
_VERSIONS = "versions"
_ADMITTED: frozenset[SkillState] = frozenset({"active", "context_only"})
_MOST_KEPT = 2_000
"""Packages whose files are kept in memory."""
_MIME_TYPES = {"md": "text/markdown", "json": "application/json", "py": "text/x-python"}
_TEMPLATES = [
    types.ResourceTemplate(
        uri_template="skill://{name}/SKILL.md",
        name="skill",
        title="Skill in use",
        description="An admitted skill as an Agent Skill; skills/get has the digests of its other files.",
        mime_type="text/markdown",
    ),
    types.ResourceTemplate(
        uri_template="skill://versions/{version}/{name}/SKILL.md",
        name="skill version",
        title="Version of a skill",
        description="Any version of a skill, also one that is not in use, with its state.",
        mime_type="text/markdown",
    ),
]


@dataclass(frozen=True, slots=True)
class Package:
    """One version of a skill as files."""

    folder: str
    """Address of its folder, without a slash at the end."""
    skill: Skill
    files: Mapping[str, bytes]
    """By path inside the folder."""

    @property
    def uri(self) -> str:
        """Address of its SKILL.md."""
        return f"{self.folder}/SKILL.md"

    def entry(self) -> dict[str, JsonValue]:
        """Return what the skills extension lists of it."""
        files: list[JsonValue] = [
            {
                "uri": f"{self.folder}/{path}",
                "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
                "size": len(content),
            }
            for path, content in sorted(self.files.items())
        ]
        return {"uri": self.uri, "frontmatter": frontmatter(self.skill), "resources": files}


class SkillPackages:
    """The packages of a bank, rendered when somebody asks for them."""

    def __init__(self, bank: BankPort) -> None:
        self._bank = bank
        self._rendered: dict[tuple[str, int, str, str], Mapping[str, bytes]] = {}

    def resources(self) -> list[types.Resource]:
        """Return the SKILL.md of every admitted skill."""
        return [self._resource(folder, skill) for folder, skill in self.admitted().items()]

    def templates(self) -> list[types.ResourceTemplate]:
        """Return the templates of skills and their versions."""
        return _TEMPLATES

    async def read(self, uri: str) -> types.ReadResourceResult | None:
        """Return a file of a package."""
        found = self.file(uri)
        if found is None:
            return None
        package, path = found
        fixed = package.folder.startswith(f"{_SCHEME}{_VERSIONS}/") and path != "SKILL.md"
        ttl_ms = FOR_EVER_MS if fixed else 0  # what is not in use any more still says its state
        return text_contents(uri, package.files[path].decode(), mime_type(path), ttl_ms=ttl_ms)

    def complete(self, wanted: Wanted) -> list[str] | None:
        """Return names of skills, and the versions of one."""
        if not wanted.is_of(_TEMPLATES):
            return None
        if wanted.argument == "version":
            named = [
                s for s in self._bank.skill_heads() if agent_skill_name(s.name) == wanted.others.get("name")
            ]
            return [str(one.version) for skill in named for one in self._bank.skill_versions(skill.name)]
        return [folder.removeprefix(_SCHEME) for folder in self.admitted()]

    def admitted(self) -> dict[str, Skill]:
        """Return the admitted skills by the address of their folder, ordered by name."""
        folders: dict[str, Skill] = {}
        for skill in self._bank.skill_heads():
            if skill.state in _ADMITTED:
                plain = f"{_SCHEME}{agent_skill_name(skill.name)}"
                # Two names may differ in underscores only, which hyphens do not tell apart.
                other = f"{_SCHEME}{skill.name}/{agent_skill_name(skill.name)}"
                folders[other if plain in folders else plain] = skill
        return folders

    def package(self, folder: str) -> Package | None:
        """Return the package in a folder, None where there is none."""
        skill = self.admitted().get(folder) or self._version(folder)
        return None if skill is None else Package(folder, skill, self._files(skill))

    def packages(self, start: int, count: int) -> tuple[list[Package], bool]:
        """Return so many packages from a position on, and whether more follow."""
        every = list(self.admitted().items())
        shown = [Package(folder, skill, self._files(skill)) for folder, skill in every[start : start + count]]
        return shown, start + count < len(every)

    def file(self, uri: str) -> tuple[Package, str] | None:
        """Return the package and path that an address stands for, None where it stands for nothing."""
        if not uri.startswith(_SCHEME):
            return None
        parts = unquote(uri.removeprefix(_SCHEME)).split("/")
        for length in range(1, min(len(parts), 4)):
            folder, path = _SCHEME + "/".join(parts[:length]), "/".join(parts[length:])
            package = self.package(folder)
            if package is not None and path in package.files:
                return package, path
        return None

    def _version(self, folder: str) -> Skill | None:
        match folder.removeprefix(_SCHEME).split("/"):
            case [first, number, name] if first == _VERSIONS and number.isascii() and number.isdigit():
                return next((one for one in self._versions(name) if str(one.version) == number), None)
            case _:
                return None

    def _versions(self, name: str) -> list[Skill]:
        """Return the versions of the skills whose package has this name."""
        named = (skill.name for skill in self._bank.skill_heads() if agent_skill_name(skill.name) == name)
        return [one for skill in named for one in self._bank.skill_versions(skill)]

    def _files(self, skill: Skill) -> Mapping[str, bytes]:
        key = (skill.name, skill.version, skill.state, skill.content_hash)
        if key not in self._rendered:
            if len(self._rendered) >= _MOST_KEPT:
                self._rendered.clear()
            self._rendered[key] = render_package(skill, self._called(skill))
        return self._rendered[key]

    def _called(self, skill: Skill) -> list[Skill]:
        """Return the skills that a workflow calls, and those that they call, each once."""
        found: dict[tuple[str, int], Skill] = {}
        waiting: list[Skill] = [skill]
        while waiting:
            for node in waiting.pop().workflow.nodes:
                key = (node.skill.name, node.skill.version) if node.skill else None
                if key is None or key in found:
                    continue
                versions: Sequence[Skill] = self._bank.skill_versions(key[0])
                for one in versions:
                    if one.version == key[1]:
                        found[key] = one
                        waiting.append(one)
        return [found[key] for key in sorted(found)]

    def _resource(self, folder: str, skill: Skill) -> types.Resource:
        changed = datetime.fromtimestamp(skill.created_at, UTC).isoformat()
        return types.Resource(
            uri=f"{folder}/SKILL.md",
            name=agent_skill_name(skill.name),
            title=skill.title or skill.name.replace("_", " ").capitalize(),
            description=str(frontmatter(skill)["description"]),
            mime_type="text/markdown",
            annotations=types.Annotations(last_modified=changed),
        )


def mime_type(path: str) -> str:
    """Return the media type of a file of a package."""
    return _MIME_TYPES.get(path.rpartition(".")[2], "text/plain")
