"""What a client can read, complete and be prompted with: several sources behind one face.

A source owns the addresses and prompts it lists and answers None for all others. Which sources
there are is `server`; each is a module of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import mcp.types as types
from mcp import MCPError
from pydantic import JsonValue

from catalog.canonical import digest
from server.surface.paging import cursor_at, position_of

__all__ = [
    "FOR_EVER_MS",
    "JSON_TYPE",
    "Library",
    "PromptSource",
    "ResourceSource",
    "Wanted",
    "json_contents",
    "json_resource",
    "json_template",
    "text_contents",
]

FOR_EVER_MS = 24 * 3600 * 1000
"""How long what never changes may be taken as fresh."""
JSON_TYPE = "application/json"
_PAGE_SIZE = 100
_MOST_COMPLETIONS = 100
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """An argument a client is filling in."""

    of: str
    """Name of a prompt, or a template of addresses."""
    argument: str
    typed: str
    """What is there so far."""
    others: Mapping[str, str]
    """Arguments that are filled in already."""

    def is_of(self, templates: Iterable[types.ResourceTemplate]) -> bool:
        """Return whether it is an argument of one of these templates."""
        return any(template.uri_template == self.of for template in templates)


class ResourceSource(Protocol):
    """Resources of one kind."""

    def resources(self) -> Sequence[types.Resource]:
        """Return the resources with a fixed address, in a stable order."""
        ...

    def templates(self) -> Sequence[types.ResourceTemplate]:
        """Return the templates of all others."""
        ...

    async def read(self, uri: str) -> types.ReadResourceResult | None:
        """Return what stands at an address, None where nothing of this source does."""
        ...

    def complete(self, wanted: Wanted) -> Sequence[str] | None:
        """Return the values an argument of a template can have, None where the template is not ours."""
        ...


class PromptSource(Protocol):
    """Prompts of one kind."""

    def prompts(self) -> Sequence[types.Prompt]:
        """Return the prompts, in a stable order."""
        ...

    async def render(
        self, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult | None:
        """Return a prompt with its arguments filled in, None where it is not ours."""
        ...

    def complete(self, wanted: Wanted) -> Sequence[str] | None:
        """Return the values an argument of a prompt can have, None where the prompt is not ours."""
        ...


@dataclass(frozen=True)
class Library:
    """All sources of one server."""

    shelves: Sequence[ResourceSource]
    prompters: Sequence[PromptSource]

    def list_resources(self, cursor: str | None) -> types.ListResourcesResult:
        """Return a page of the resources with a fixed address."""
        page, following = _page([one for shelf in self.shelves for one in shelf.resources()], cursor)
        return types.ListResourcesResult(resources=page, next_cursor=following)

    def list_templates(self, cursor: str | None) -> types.ListResourceTemplatesResult:
        """Return a page of the templates."""
        page, following = _page([one for shelf in self.shelves for one in shelf.templates()], cursor)
        return types.ListResourceTemplatesResult(resource_templates=page, next_cursor=following)

    def list_prompts(self, cursor: str | None) -> types.ListPromptsResult:
        """Return a page of the prompts."""
        page, following = _page([one for source in self.prompters for one in source.prompts()], cursor)
        return types.ListPromptsResult(prompts=page, next_cursor=following)

    async def read(self, uri: str) -> types.ReadResourceResult:
        """Return the contents of a resource.

        Raises:
            MCPError: there is none at this address.
        """
        for shelf in self.shelves:
            if (found := await shelf.read(uri)) is not None:
                return found
        raise MCPError(
            types.INVALID_PARAMS,
            "Resource not found: resources/list and resources/templates/list have what there is",
            {"uri": uri},
        )

    def fingerprint(self) -> str:
        """`sha256:…` over which resources there are."""
        kept = {"uri", "name", "title", "annotations"}
        every = [one for shelf in self.shelves for one in shelf.resources()]
        return digest([one.model_dump(mode="json", include=kept) for one in every])

    async def prompt(
        self, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """Return a prompt with its arguments filled in.

        Raises:
            MCPError: there is no such prompt, or a required argument is missing.
        """
        for source in self.prompters:
            known = {prompt.name: prompt for prompt in source.prompts()}
            if params.name in known:
                _check_prompt(known[params.name], params.arguments or {})
                if (rendered := await source.render(params)) is not None:
                    return rendered
        names = ", ".join(prompt.name for source in self.prompters for prompt in source.prompts())
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}. There are: {names}")

    def complete(self, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return what the argument of a prompt or template can be completed to.

        Raises:
            MCPError: there is no such prompt or template.
        """
        wanted = _wanted(params)
        sources = self.prompters if isinstance(params.ref, types.PromptReference) else self.shelves
        for source in sources:
            if (values := source.complete(wanted)) is not None:
                fitting = _fitting(values, wanted.typed)
                shown = fitting[:_MOST_COMPLETIONS]
                more = len(fitting) > len(shown)
                return types.CompleteResult(
                    completion=types.Completion(values=shown, total=len(fitting), has_more=more)
                )
        kind = "prompt" if isinstance(params.ref, types.PromptReference) else "resource template"
        raise MCPError(types.INVALID_PARAMS, f"Unknown {kind}: {wanted.of}")


def text_contents(
    uri: str, text: str, mime_type: str = JSON_TYPE, *, ttl_ms: int = 0
) -> types.ReadResourceResult:
    """Return one text as the contents of a resource.

    Args:
        uri: its address.
        text: whole.
        mime_type: of the text.
        ttl_ms: how long it may be taken as fresh.
    """
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.ReadResourceResult(contents=[contents], ttl_ms=ttl_ms, cache_scope="private")


def json_contents(uri: str, value: JsonValue, *, ttl_ms: int = 0) -> types.ReadResourceResult:
    """Return a value as the contents of a resource."""
    return text_contents(uri, json.dumps(value, ensure_ascii=False), ttl_ms=ttl_ms)


def json_resource(uri: str, name: str, title: str | None, description: str) -> types.Resource:
    """Return the entry of a resource that is JSON."""
    return types.Resource(uri=uri, name=name, title=title, description=description, mime_type=JSON_TYPE)


def json_template(uri_template: str, name: str, description: str) -> types.ResourceTemplate:
    """Return the template of resources that are JSON."""
    return types.ResourceTemplate(
        uri_template=uri_template, name=name, description=description, mime_type=JSON_TYPE
    )


def _page(entries: list[_T], cursor: str | None) -> tuple[list[_T], str | None]:
    start = position_of(cursor)
    end = start + _PAGE_SIZE
    return entries[start:end], cursor_at(end) if end < len(entries) else None


def _check_prompt(prompt: types.Prompt, arguments: Mapping[str, str]) -> None:
    missing = [one.name for one in prompt.arguments or [] if one.required and not arguments.get(one.name)]
    if missing:
        names = ", ".join(f"{one.name}{' (required)' * bool(one.required)}" for one in prompt.arguments or [])
        raise MCPError(
            types.INVALID_PARAMS,
            f"Prompt {prompt.name} needs {', '.join(missing)}. Its arguments are: {names}",
        )


def _wanted(params: types.CompleteRequestParams) -> Wanted:
    of = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
    filled = params.context.arguments if params.context is not None else None
    return Wanted(of, params.argument.name, params.argument.value, filled or {})


def _fitting(values: Sequence[str], typed: str) -> list[str]:
    """Return the values that begin as typed, then those that hold it anywhere."""
    low = typed.casefold()
    begins = [value for value in values if value.casefold().startswith(low)]
    return begins + [value for value in values if low in value.casefold() and value not in begins]
