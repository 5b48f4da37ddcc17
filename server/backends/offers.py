"""What an OpenAI-compatible server is, and which form of structured answer it really enforces.

What it is, it says at addresses of its own. What it enforces is tried once, with a request whose
prompt asks for something that the schema forbids: a server that only ignores the schema is found
out. The finding is remembered by address, model and kind of server, in a file where there is one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from catalog.tools import JsonSchema
from catalog.whole_file import write_whole
from server.backends.backend import Message, Request
from server.backends.ladder import PLAIN, Form

__all__ = [
    "FORMS",
    "Found",
    "Memory",
    "ServerKind",
    "form_fields",
    "forms_of",
    "probe",
]

_LOG = logging.getLogger(__name__)

ServerKind = Literal["llama.cpp", "Ollama", "vLLM", "unknown"]

_JSON_SCHEMA = Form("response_format json_schema", "schema")
_JSON_OBJECT_SCHEMA = Form("response_format json_object with schema", "schema")
_STRUCTURED_OUTPUTS = Form("structured_outputs json", "schema")
_FORMAT = Form("format", "schema")
_GRAMMAR = Form("json_schema to grammar", "schema")
_JSON_OBJECT = Form("response_format json_object", "json")

FORMS: Mapping[str, Form] = {
    form.name: form
    for form in (
        _JSON_SCHEMA,
        _JSON_OBJECT_SCHEMA,
        _STRUCTURED_OUTPUTS,
        _FORMAT,
        _GRAMMAR,
        _JSON_OBJECT,
        PLAIN,
    )
}
"""Every form by name."""

_BY_KIND: Mapping[ServerKind, tuple[Form, ...]] = {
    "llama.cpp": (_JSON_SCHEMA, _GRAMMAR, _JSON_OBJECT_SCHEMA, _JSON_OBJECT, PLAIN),
    "Ollama": (_JSON_SCHEMA, _FORMAT, _JSON_OBJECT, PLAIN),
    "vLLM": (_JSON_SCHEMA, _STRUCTURED_OUTPUTS, _JSON_OBJECT, PLAIN),
    "unknown": (
        _JSON_SCHEMA,
        _JSON_OBJECT_SCHEMA,
        _STRUCTURED_OUTPUTS,
        _FORMAT,
        _GRAMMAR,
        _JSON_OBJECT,
        PLAIN,
    ),
}

_WORD = "heron"
_PROBE_SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {"bird": {"type": "string", "enum": [_WORD]}},
    "required": ["bird"],
    "additionalProperties": False,
}


class Found(BaseModel):
    """What was found out about one server and model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ServerKind
    form: str
    """Name of the strictest form that it enforces."""


@dataclass(frozen=True)
class Memory:
    """Findings of earlier processes. A file that cannot be read or written costs a probe, no more."""

    path: Path | None

    def recall(self, place: str, model: str) -> Found | None:
        """Return what was found, None where nothing was or it is of another version."""
        try:
            found = Found.model_validate(self._read().get(f"{place}#{model}"))
        except ValidationError:
            return None
        return found if found.form in FORMS else None

    def keep(self, place: str, model: str, found: Found) -> None:
        """Remember a finding."""
        if self.path is None:
            return
        entries = self._read() | {f"{place}#{model}": found.model_dump()}
        try:
            write_whole(self.path, json.dumps(entries, indent=2, sort_keys=True).encode())
        except OSError as error:
            _LOG.warning("what %s offers is not remembered: %s", place, error)

    def _read(self) -> dict[str, JsonValue]:
        if self.path is None or not self.path.exists():
            return {}
        try:
            entries: object = json.loads(self.path.read_bytes())
        except (OSError, ValueError) as error:
            _LOG.warning("%s cannot be read, servers are tried anew: %s", self.path, error)
            return {}
        return cast("dict[str, JsonValue]", entries) if isinstance(entries, dict) else {}


def forms_of(kind: ServerKind, strictest: Form | None = None) -> tuple[Form, ...]:
    """Return the forms to try on a server, strictest first; only from the one that is known to hold."""
    forms = _BY_KIND[kind]
    return forms[forms.index(strictest) :] if strictest in forms else forms


def form_fields(form: Form, name: str, schema: JsonSchema) -> dict[str, Any]:
    """Return the fields of a chat request that ask for an answer in a form."""
    if form == _JSON_SCHEMA:
        wrapped = {"name": name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": wrapped}}
    if form == _JSON_OBJECT_SCHEMA:
        return {"extra_body": {"response_format": {"type": "json_object", "schema": schema}}}
    if form == _STRUCTURED_OUTPUTS:
        return {"extra_body": {"structured_outputs": {"json": schema}}}
    if form == _FORMAT:
        return {"extra_body": {"format": schema}}
    if form == _GRAMMAR:
        return {"extra_body": {"json_schema": schema}}
    if form == _JSON_OBJECT:
        return {"response_format": {"type": "json_object"}}
    return {}


def _is_enforced(form: Form, text: str) -> bool:
    """Return whether the answer to the probe shows that a form was enforced."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) if form.constraint == "json" else value == {"bird": _WORD}


async def probe(kind: ServerKind, ask: Callable[[Form, Request], Awaitable[str | None]]) -> Form:
    """Return the strictest form that a server enforces.

    Args:
        kind: of the server.
        ask: asks once in a form and returns the answer, None where the form was refused; raises
            where the plain one was.
    """
    answers: list[str] = []
    for form in forms_of(kind)[:-1]:
        answer = await ask(form, _PROBES[form.constraint])
        if answer is None:
            continue
        if _is_enforced(form, answer):
            return form
        answers.append(answer)
    if not answers:  # nothing was taken: is it the form, or everything?
        await ask(PLAIN, _PROBES["json"])
    return PLAIN


def _probe_request(prompt: str) -> Request:
    return Request(
        (Message("user", prompt),),
        _PROBE_SCHEMA,
        schema_name="bird",
        max_output_tokens=32,
        deadline_seconds=120.0,
    )


_PROBES: Mapping[str, Request] = {
    "schema": _probe_request("Say hello in one word."),
    "json": _probe_request("Say hello in one word, as the JSON object with the key 'word'."),
}
