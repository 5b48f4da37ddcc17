"""Changes of a configuration document: pure, and keeping every key they do not name."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import cast

from catalog.canonical import JsonValue
from catalog.config.formats import SERVER_KEYS
from catalog.effects import Effect, Reset

__all__ = ["with_allow", "with_effects", "with_reset", "with_server"]

Document = Mapping[str, JsonValue]


def with_server(document: Document, name: str, entry: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the document with a server added or replaced, under the key it already uses."""
    changed = copy.deepcopy(dict(document))
    key = next((key for key in SERVER_KEYS if key in changed), SERVER_KEYS[0])
    _table(changed, key)[name] = dict(entry)
    return changed


def with_effects(
    document: Document, server: str, classes: Mapping[str, Effect], *, replace: bool = False
) -> dict[str, JsonValue]:
    """Return the document with effect classes set by tool name or pattern.

    Args:
        document: as read.
        server: whose tools.
        classes: by tool name or glob pattern.
        replace: whether the server's other entries go.
    """
    changed = copy.deepcopy(dict(document))
    effects = _table(changed, "skillbank", "effects")
    kept = {} if replace else cast("dict[str, JsonValue]", effects.get(server, {}))
    effects[server] = {**kept, **{pattern: effect.value for pattern, effect in classes.items()}}
    return changed


def with_reset(document: Document, server: str, mode: Reset) -> dict[str, JsonValue]:
    """Return the document with the reset mode of a server set."""
    changed = copy.deepcopy(dict(document))
    _table(changed, "skillbank", "reset")[server] = mode.value
    return changed


def with_allow(document: Document, server: str, patterns: Iterable[str]) -> dict[str, JsonValue]:
    """Return the document with tools that plans may run once without asking added to a server's."""
    changed = copy.deepcopy(dict(document))
    allow = _table(changed, "skillbank", "allow")
    kept = cast("list[JsonValue]", allow.get(server, []))
    allow[server] = [*kept, *(pattern for pattern in patterns if pattern not in kept)]
    return changed


def _table(document: dict[str, JsonValue], *keys: str) -> dict[str, JsonValue]:
    for key in keys:
        document = cast("dict[str, JsonValue]", document.setdefault(key, {}))
    return document
