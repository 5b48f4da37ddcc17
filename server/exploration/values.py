"""Values that an argument could be given: what schema, prose, earlier answers and refusals say of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from pydantic import JsonValue

from catalog.canonical import canonical_json
from catalog.schema import coerce, is_valid, samples, types
from catalog.similarity import name_similarity, words
from catalog.tools import JsonSchema, Tool
from server.evolution.run_faults import offered_values
from server.exploration.arguments import argument_schemas, is_handle
from server.exploration.lexicon import is_statement, statements, typical_values
from server.exploration.prose import said_examples

__all__ = ["KnownValues"]

_NEAR: Final = 0.8
_PLAIN_NUMBERS: Final = (12, 5, 8, 3, 20, 7, 15, 9)
_STATED: Final = frozenset({"query", "sql", "statement"})
"""What an argument is called that takes a statement of a language."""


@dataclass
class KnownValues:
    """What is known of good values while an exploration goes on.

    Attributes:
        meanings: what arguments mean, by name, in a person's words.
        worked: values by argument name that a successful call had, the first one first.
        offered: values by tool and argument that a refusal named.
        seen: scalar values by the key they stood under in an answer.
    """

    seed: int = 0
    meanings: Mapping[str, str] = field(default_factory=dict[str, str])
    worked: dict[str, list[JsonValue]] = field(default_factory=dict[str, list[JsonValue]])
    offered: dict[tuple[str, str], list[JsonValue]] = field(
        default_factory=dict[tuple[str, str], list[JsonValue]]
    )
    seen: dict[str, list[JsonValue]] = field(default_factory=dict[str, list[JsonValue]])

    def candidates(self, tool: Tool, argument: str, limit: int = 12) -> list[JsonValue]:
        """Return different values for an argument that its schema allows, the likeliest first."""
        schema = argument_schemas(tool).get(argument, {})
        found: dict[bytes, JsonValue] = {}
        for value in self._all(tool, argument, schema):
            read = coerce(schema, value)[0] if schema else value
            if not schema or is_valid(schema, read):
                found.setdefault(canonical_json(read), read)
            if len(found) >= limit:
                break
        return list(found.values())

    def would_try(self, tool: Tool, argument: str, value: JsonValue) -> bool:
        """Return whether a value is one that schema, prose or general knowledge give for an argument."""
        return value in self._told(tool, argument, argument_schemas(tool).get(argument, {}))

    def learn_success(
        self, arguments: Mapping[str, JsonValue], output: JsonValue, read: Collection[str] = ()
    ) -> None:
        """Keep the arguments of a call that succeeded and the named scalars of its answer.

        Args:
            arguments: of the call.
            output: of its answer.
            read: arguments that an earlier answer gave; they are no values that anybody would type.
        """
        for name, value in arguments.items():
            if name not in read:
                _add(self.worked.setdefault(name, []), value)
        for key, value in _named_scalars(output, "", 0):
            _add(self.seen.setdefault(key, []), value)

    def forget(self, value: JsonValue) -> None:
        """Forget a value that an answer gave and that works no longer."""
        for values in self.seen.values():
            values[:] = [other for other in values if other != value]

    def learn_refusal(self, tool: str, arguments: dict[str, JsonValue], message: str) -> bool:
        """Keep the values that a refusal offers instead; return whether it offered any.

        They are put down for the argument whose name or value the message says, else for each text.
        """
        offered = offered_values(message)
        texts = [name for name, value in arguments.items() if isinstance(value, str)]
        lowered = message.lower()
        named = [n for n in texts if n.lower() in lowered or str(arguments[n]).lower() in lowered]
        for name in named or texts:
            for value in offered:
                if value not in arguments.values():
                    _add(self.offered.setdefault((tool, name), []), value)
        return bool(offered)

    def _all(self, tool: Tool, argument: str, schema: JsonSchema) -> Iterator[JsonValue]:
        yield from self.offered.get((tool.id.tool, argument), ())
        handles = [*self._of_like_names(self.seen, argument)] if is_handle(argument) else []
        if handles:  # what nobody gave out can only be wrong, unless it is said
            yield from (*handles, *self._said(tool, argument, schema))
            return
        yield from _listed(schema, "enum")
        yield from self._of_like_names(self.worked, argument)
        yield from self._told(tool, argument, schema)
        if "string" in types(schema):
            yield from self._of_like_names(self.seen, argument)
        yield from samples(schema, self.seed, 6) if schema else ("sample", 1)

    def _told(self, tool: Tool, argument: str, schema: JsonSchema) -> Iterator[JsonValue]:
        """Yield what a person, schema, prose and general knowledge give for an argument."""
        yield from said_examples(self.meanings.get(argument, ""))
        if "string" in types(schema) and words(argument)[-1:] and words(argument)[-1] in _STATED:
            yield from statements(f"{argument}: {schema.get('description', '')}. {tool.description}")
        yield from self._said(tool, argument, schema)
        yield from typical_values(argument)
        yield from _numbers(schema, self.seed)
        yield from _of_array(schema)

    def _said(self, tool: Tool, argument: str, schema: JsonSchema) -> Iterator[JsonValue]:
        """Yield what a person, schema and prose give for an argument."""
        yield from said_examples(self.meanings.get(argument, ""))
        yield from _listed(schema, "enum")
        yield from _listed(schema, "examples")
        if "default" in schema and schema["default"] not in (None, ""):
            yield schema["default"]
        yield from said_examples(str(schema.get("description", "")))
        if "string" in types(schema):
            yield from said_examples(_about(tool.description, argument))

    def _of_like_names(self, table: dict[str, list[JsonValue]], argument: str) -> Iterator[JsonValue]:
        yield from (value for value in table.get(argument, ()) if not is_statement(value))
        for name, values in table.items():
            if name != argument and name_similarity(name, argument) >= _NEAR:
                yield from values[:3]


def _listed(schema: JsonSchema, keyword: str) -> list[JsonValue]:
    values = schema.get(keyword)
    return values if isinstance(values, list) else []


def _numbers(schema: JsonSchema, seed: int) -> Iterator[JsonValue]:
    """Yield plain numbers where one is wanted, others first for each seed; none leaves a sum as it is."""
    if types(schema) & {"number", "integer"}:
        start = seed % len(_PLAIN_NUMBERS)
        yield from (*_PLAIN_NUMBERS[start:], *_PLAIN_NUMBERS[:start])


def _add(values: list[JsonValue], value: JsonValue) -> None:
    if value not in values and len(values) < 20:
        values.append(value)


def _about(description: str, argument: str) -> str:
    """Return the lines of a tool's description that name an argument."""
    return "\n".join(
        line for line in description.splitlines() if re.search(rf"\b{re.escape(argument)}\b", line)
    )


def _of_array(schema: JsonSchema) -> Iterator[JsonValue]:
    items = schema.get("items")
    if "array" not in types(schema) or not isinstance(items, dict):
        return
    of_items = cast("JsonSchema", items)
    members = said_examples(str(of_items.get("description", "")))
    if members:
        yield [*members[:3]]
    if types(of_items) & {"number", "integer"} and not of_items.get("enum"):
        yield [3, 1, 2]
        yield [4, 8, 15, 16, 23]


def _named_scalars(value: JsonValue, key: str, depth: int) -> Iterator[tuple[str, JsonValue]]:
    if depth > 5:
        return
    match value:
        case dict():
            for name, part in value.items():
                yield from _named_scalars(part, name, depth + 1)
                if key and is_handle(name) and isinstance(part, str | int):
                    yield f"{key}_{name}", part
        case list():
            for part in value[:5]:
                yield from _named_scalars(part, key.removesuffix("s"), depth + 1)
        case str() | int() | float() if key and not isinstance(value, bool) and value != "":
            yield key, value
        case _:
            return
