"""The skills extension of the protocol (SEP-2640): packages listed with digests, and their folders.

Its methods exist in 2026-07-28 only; older clients read the same files as resources. Changes are
told as changes of the resource list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import mcp.types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from pydantic import JsonValue

from server.surface.paging import cursor_at, position_of
from server.surface.skill_packages import SkillPackages, mime_type

__all__ = ["SKILLS_EXTENSION", "offer_skills"]

SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
_PAGE_SIZE = 50
_CACHE: Mapping[str, JsonValue] = {"ttlMs": 0, "cacheScope": "private"}
_FOLDER = "inode/directory"
_LONGEST_ADDRESS = 2_048

_Context = ServerRequestContext[Any, Any]


class _ListSkills(types.PaginatedRequestParams):
    """Parameters of `skills/list`."""


class _GetSkill(types.RequestParams):
    """Parameters of `skills/get`."""

    uri: str


class _ReadFolder(types.PaginatedRequestParams):
    """Parameters of `resources/directory/read`."""

    uri: str


def offer_skills(server: Server[Any], packages: SkillPackages) -> None:
    """Make a server answer the methods of the extension, and declare it."""

    async def list_skills(ctx: _Context, params: _ListSkills) -> dict[str, JsonValue]:
        del ctx
        start = position_of(params.cursor)
        shown, more = packages.packages(start, _PAGE_SIZE)
        following = {"nextCursor": cursor_at(start + _PAGE_SIZE)} if more else {}
        return {"skills": [package.entry() for package in shown], **following, **_CACHE}

    async def get_skill(ctx: _Context, params: _GetSkill) -> dict[str, JsonValue]:
        del ctx
        found = packages.file(params.uri) if len(params.uri) <= _LONGEST_ADDRESS else None
        if found is None or found[1] != "SKILL.md":
            raise MCPError(
                types.INVALID_PARAMS,
                "No skill is served at this address: skills/list has those there are",
                {"uri": params.uri},
            )
        return {"skill": found[0].entry(), **_CACHE}

    async def read_folder(ctx: _Context, params: _ReadFolder) -> dict[str, JsonValue]:
        del ctx
        children = _children(packages, params.uri.rstrip("/"))
        if not children:
            raise MCPError(types.INVALID_PARAMS, "No folder is at this address", {"uri": params.uri})
        start = position_of(params.cursor)
        shown: list[JsonValue] = [children[uri] for uri in sorted(children)[start : start + _PAGE_SIZE]]
        more = {"nextCursor": cursor_at(start + _PAGE_SIZE)} if start + _PAGE_SIZE < len(children) else {}
        return {"resources": shown, **more}

    server.extensions[SKILLS_EXTENSION] = {"directoryRead": True}
    server.add_request_handler("skills/list", _ListSkills, list_skills)
    server.add_request_handler("skills/get", _GetSkill, get_skill)
    server.add_request_handler("resources/directory/read", _ReadFolder, read_folder)


def _children(packages: SkillPackages, folder: str) -> dict[str, JsonValue]:
    """Return the entries of a folder by address; empty where there is no such folder."""
    package = next(
        (found for above in _above(folder) if (found := packages.package(above)) is not None), None
    )
    if package is None:
        return {}
    children: dict[str, JsonValue] = {}
    for path in package.files:
        uri = f"{package.folder}/{path}"
        if uri.startswith(f"{folder}/"):
            name, _, rest = uri.removeprefix(f"{folder}/").partition("/")
            kind = _FOLDER if rest else mime_type(path)
            children[f"{folder}/{name}"] = {"uri": f"{folder}/{name}", "name": name, "mimeType": kind}
    return children


def _above(folder: str) -> list[str]:
    scheme, _, path = folder.partition("://")
    parts = path.split("/")
    return [f"{scheme}://{'/'.join(parts[:end])}" for end in range(len(parts), 0, -1)]
