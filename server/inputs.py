"""Inputs that configured servers wait for: which are not answered, and keeping an answer.

Asking a person is the border's; where answers are kept is `catalog.secret_store`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catalog.config import InputSpec, ServerSpec
from catalog.secret_store import SecretStore

__all__ = ["InputState", "input_states", "unanswered"]


@dataclass(frozen=True, slots=True)
class InputState:
    """One input of the configuration, who names it, and whether it is answered."""

    asked: InputSpec
    servers: tuple[str, ...]
    answered: bool


def input_states(
    inputs: Iterable[InputSpec], servers: Iterable[ServerSpec], secrets: SecretStore
) -> tuple[InputState, ...]:
    """Return every input in its order, with the servers that name it.

    Raises:
        SecretsUnusable: answers cannot be looked up.
    """
    specs = tuple(servers)
    return tuple(
        InputState(
            asked,
            tuple(spec.name for spec in specs if asked.id in spec.inputs_named),
            secrets.get(asked.key) is not None,
        )
        for asked in inputs
    )


def unanswered(servers: Iterable[ServerSpec], secrets: SecretStore) -> tuple[InputSpec, ...]:
    """Return the inputs that servers which are not disabled name and nobody answered, each once.

    Raises:
        SecretsUnusable: answers cannot be looked up.
    """
    named = {
        name: spec.inputs[name]
        for spec in servers
        if not spec.disabled
        for name in sorted(spec.inputs_named)
        if name in spec.inputs
    }
    return tuple(asked for asked in named.values() if secrets.get(asked.key) is None)
