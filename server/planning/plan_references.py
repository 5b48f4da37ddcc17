"""References as models write them, turned into those of a workflow document.

`$n1.items[0].name`, `$nodes.n1.output#/items/0/name`, `${n1.name}`, `{{n1.name}}`, and `n1.name`
where `n1` is a node: all mean the same. Text that only looks like one is escaped, so that it
stands for itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from skills_store.workflow.model import json_pointer
from skills_store.workflow.references import Reference, escape_literal

__all__ = ["Spoken"]

_PATH = (
    r"(?:\.outputs?(?![\w-]))?(?P<path>(?:\.[\w-]+|\[\d+\]|\[['\"][^'\"\]#{}/]+['\"]\])*)"
    r"(?:#(?P<pointer>(?:/[^/#{}\s]*)*))?"
)
_NAME = r"(?:nodes\.|steps\.)?(?P<name>[A-Za-z_]\w*)"
_WHOLE = re.compile(r"\$?(?:\{\{?)?\s*\$?" + _NAME + _PATH + r"\s*(?:\}\}?)?")
_INSIDE = re.compile(r"(?:\$\{|\{\{\s*\$?|\{\$|\$)" + _NAME + _PATH + r"(?:\s*\}\}?)?")
_PART = re.compile(r"\.([\w-]+)|\[(\d+)\]|\[['\"]([^'\"\]]+)['\"]\]")
_GUESSED = re.compile(r"(?:n|node|step)_?\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Spoken:
    """The names a plan can refer to."""

    nodes: Mapping[str, str]
    """Our id by what the plan calls a node."""
    inputs: frozenset[str] = frozenset()

    def meant(self, value: JsonValue) -> JsonValue:
        """Return a value with every reference in it as a workflow document writes it."""
        match value:
            case str():
                return self._text(value)
            case dict():
                return {key: self.meant(item) for key, item in value.items()}
            case list():
                return [self.meant(item) for item in value]
            case _:
                return value

    def _text(self, text: str) -> JsonValue:
        stripped = text.strip()
        match = _WHOLE.fullmatch(stripped)
        is_marked = stripped[:1] == "$" or stripped[:2] == "{{"
        if match and (is_marked or (match["path"] and self._node(match["name"]))):
            found = self._reference(match, is_marked=is_marked)
            if found is not None:
                return found
        return self._template(text)

    def _template(self, text: str) -> JsonValue:
        """Return text with placeholders for the references inside it; anything else stands for itself."""
        made: list[str] = []
        end = 0
        for match in _INSIDE.finditer(text):
            found = self._reference(match, is_marked=False)
            if found is not None:
                made += [_inert(text[end : match.start()]), "{", found, "}"]
                end = match.end()
        if not made:
            return escape_literal(text)
        return ("$" if made[0].startswith("$") else "") + "".join(made) + _inert(text[end:])

    def _reference(self, match: re.Match[str], *, is_marked: bool) -> str | None:
        """Return the reference a match means, None when it means none."""
        name, pointer = match["name"], _pointer(match["path"], match["pointer"])
        if name in ("inputs", "input") and match["path"]:
            first, *rest = _parts(match["path"])
            if first in self.inputs:
                return str(
                    Reference("inputs", first, json_pointer(*rest) if rest else match["pointer"] or "")
                )
            return None
        if name == "item" and is_marked:
            return str(Reference("item", "", pointer))
        node = self._node(name)
        if node is None and is_marked and _GUESSED.fullmatch(name):
            node = name.lower()  # a node that is not there: a fault the next attempt sees
        if node is not None:
            return str(Reference("nodes", node, pointer))
        if name in self.inputs and is_marked:
            return str(Reference("inputs", name, pointer))
        return None

    def _node(self, name: str) -> str | None:
        return self.nodes.get(name) or next((own for own in self.nodes.values() if own == name), None)


def _pointer(path: str, pointer: str | None) -> str:
    if pointer:
        return pointer
    parts = _parts(path)
    return json_pointer(*parts) if parts else ""


def _parts(path: str) -> list[str]:
    return [next(part for part in match.groups() if part is not None) for match in _PART.finditer(path)]


def _inert(text: str) -> str:
    """Return a part of a template that holds no placeholder."""
    return text.replace("{$", "{{$")
