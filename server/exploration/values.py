"""Values that an argument could be given: what schema, prose, earlier answers and refusals say of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from pydantic import JsonValue

from catalog.canonical import canonical_json
from catalog.schema import coerce, inline_refs, is_valid, samples, types
from catalog.similarity import name_similarity, words
from catalog.tools import JsonSchema, Tool
from server.curation.differences import is_moment
from server.evolution.run_faults import offered_values
from server.exploration.lexicon import is_statement, statements, typical_values

__all__ = [
    "KnownValues",
    "argument_schemas",
    "is_handle",
    "is_server_made",
    "required_arguments",
    "said_examples",
]

_NEAR: Final = 0.8
_EXAMPLES: Final = re.compile(
    r"(?:e\.?\s?g\.?|for example|such as|examples?|like|one of|options?|supported|values?|either)\b"
    r"[^'\"`]{0,24}"
    r"((?:['\"`][^'\"`\n]{1,60}['\"`](?:,|\s|or|and|/|\|)*){1,12})",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(
    r"(?:\(|:\s|\bone of:?\s)"
    r"((?:[a-z][\w-]{0,24}\s*[,|/]\s*(?:or |and )?){1,16}[a-z][\w-]{0,24})(?=[).;\n]|\s*$)"
)
_QUOTED: Final = re.compile(r"['\"`]([^'\"`\n]{1,60})['\"`]")
_PLAIN: Final = re.compile(
    r"(?:e\.?\s?g\.?,?|for example,?|such as)\s+([\w./:+-]{1,40}(?:,\s*[\w./:+-]{1,40}){0,5})", re.IGNORECASE
)

_PLAIN_NUMBERS: Final = (12, 5, 8, 3, 20, 7, 15, 9)


_STATED: Final = frozenset({"query", "sql", "statement"})
"""What an argument is called that takes a statement of a language."""
_HANDLES: Final = frozenset({"id", "handle", "token", "cursor", "ref", "uid", "uuid"})


def is_handle(name: str) -> bool:
    """Return whether a name is that of a value which only the server can give out."""
    return not _HANDLES.isdisjoint(words(name))


def is_server_made(key: str, value: JsonValue) -> bool:
    """Return whether another process would answer this otherwise: a handle, a time, a path."""
    is_path = isinstance(value, str) and re.fullmatch(r"(?:/[^/\n]+){2,}/?", value) is not None
    return is_handle(key) or is_moment(value) or is_path


def argument_schemas(tool: Tool) -> dict[str, JsonSchema]:
    """Return the schema of each argument a tool declares, as one that can be read by itself."""
    properties = inline_refs(tool.input_schema).get("properties")
    if not isinstance(properties, dict):
        return {}
    root = tool.input_schema
    return {name: _alone(part, root) if isinstance(part, dict) else {} for name, part in properties.items()}


def _alone(part: JsonSchema, root: JsonSchema) -> JsonSchema:
    """Return a part with what it needs of the whole: its dialect, and the definitions it still refers to."""
    if not part:
        return part
    wanted = ("$schema", "$defs", "definitions") if "$ref" in str(part) else ("$schema",)
    return {**{key: root[key] for key in wanted if key in root}, **part}


def required_arguments(tool: Tool) -> tuple[str, ...]:
    """Return the names of the arguments that a tool requires."""
    required = tool.input_schema.get("required")
    return tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else ()


def said_examples(text: str) -> list[str]:
    """Return values that a description gives as examples, in its order."""
    listed = [
        part for group in _LISTED.findall(text) for part in re.split(r"\s*[,|/]\s*(?:or |and )?", group)
    ]
    quoted = [value for listed in _EXAMPLES.findall(text) for value in _QUOTED.findall(listed)]
    plain = [value.strip(" .") for listed in _PLAIN.findall(text) for value in listed.split(",")]
    return list(dict.fromkeys(value for value in (*quoted, *listed, *plain) if value))


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
