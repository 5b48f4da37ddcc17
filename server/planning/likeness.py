"""How likely one place of an output is what somebody meant who named another."""

from __future__ import annotations

from catalog.similarity import name_similarity, words
from server.planning.leaves import Leaf
from skills_store.workflow.references import Reference, pointer_parts

__all__ = ["GENERIC_KEYS", "pointer_cost"]

GENERIC_KEYS = frozenset({"result", "value", "output", "data", "text", "answer", "content", "results"})
"""Words of keys that say nothing but that here is the answer."""


def pointer_cost(reference: Reference, leaf: Leaf, slot: str) -> float:
    """Return how unlikely a leaf is what a reference means: by key, by kind, and not an echo of an input.

    Args:
        reference: what is read now.
        leaf: what could be read instead.
        slot: name of what reads it, empty when there is none.
    """
    if leaf.pointer == reference.pointer:
        return 0.0
    wanted = (pointer_parts(reference.pointer) or [""])[-1]
    by_key = name_similarity(wanted, leaf.key) if wanted and leaf.key else 0.2
    if set(words(wanted)) & GENERIC_KEYS and set(words(leaf.key)) & GENERIC_KEYS:
        by_key = max(by_key, 0.7)
    by_slot = 0.8 * name_similarity(slot, leaf.key) if leaf.key else 0.1
    container = 0.6 if leaf.types & {"object", "array"} else 0.0
    echo = 0.5 if leaf.key.startswith(("input", "from", "original", "source")) else 0.0
    return 0.2 + 1.5 * (1 - max(by_key, by_slot)) + container + echo
