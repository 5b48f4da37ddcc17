"""Changes of a configuration document: pure, and keeping every key they do not name."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import cast

from catalog.canonical import JsonValue
from catalog.config.formats import SERVER_KEYS
from catalog.config.model import ResetCheck
from catalog.effects import Effect, Reset

__all__ = [
    "with_allow",
    "with_effects",
    "with_inputs",
    "with_reset",
    "with_reset_check",
    "with_server",
    "without_profile",
    "without_server",
]

Document = Mapping[str, JsonValue]


def with_server(document: Document, name: str, entry: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the document with a server added or replaced, under the key it already uses."""
    changed = copy.deepcopy(dict(document))
    key = next((key for key in SERVER_KEYS if key in changed), SERVER_KEYS[0])
    _table(changed, key)[name] = dict(entry)
    return changed


def without_server(document: Document, name: str) -> dict[str, JsonValue]:
    """Return the document without a server, under whichever key it stands."""
    changed = copy.deepcopy(dict(document))
    for key in SERVER_KEYS:
        if isinstance(table := changed.get(key), dict):
            table.pop(name, None)
    return changed


def with_inputs(document: Document, inputs: Sequence[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the document asking for more inputs, each as its entry; one of a known id is replaced."""
    changed = copy.deepcopy(dict(document))
    if inputs:
        ids = [entry["id"] for entry in inputs]
        kept = cast("list[dict[str, JsonValue]]", changed.get("inputs", []))
        changed["inputs"] = [*(e for e in kept if e.get("id") not in ids), *(dict(e) for e in inputs)]
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


def with_reset_check(document: Document, server: str, check: ResetCheck) -> dict[str, JsonValue]:
    """Return the document with a trial of a server's reset mode recorded; a refuted mode is withdrawn."""
    changed = copy.deepcopy(dict(document))
    _table(changed, "skillbank", "reset_checks")[server] = {
        "mode": check.mode.value,
        "verdict": check.verdict,
        "on": check.on,
        "why": check.why,
    }
    reset = _table(changed, "skillbank", "reset")
    if check.verdict == "holds":
        reset[server] = check.mode.value
    elif check.verdict == "refuted" and reset.get(server) == check.mode.value:
        reset[server] = Reset.NONE.value
    return changed


def with_allow(
    document: Document, server: str, pattern: str, *, allowed: bool = True
) -> dict[str, JsonValue]:
    """Return the document with consent to first runs of a server's tools given or taken back."""
    changed = copy.deepcopy(dict(document))
    allow = _table(changed, "skillbank", "allow")
    others = [other for other in cast("list[JsonValue]", allow.get(server, [])) if other != pattern]
    allow[server] = [*others, pattern] if allowed else others
    return changed


def without_profile(document: Document, server: str) -> dict[str, JsonValue]:
    """Return the document with all that was said of a server's tools taken out."""
    changed = copy.deepcopy(dict(document))
    for key in ("effects", "reset", "reset_checks", "allow"):
        own = changed.get("skillbank")
        if isinstance(own, dict) and isinstance(table := own.get(key), dict):
            table.pop(server, None)
    return changed


def _table(document: dict[str, JsonValue], *keys: str) -> dict[str, JsonValue]:
    for key in keys:
        document = cast("dict[str, JsonValue]", document.setdefault(key, {}))
    return document
