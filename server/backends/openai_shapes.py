"""What goes to OpenAI and what comes back: requests in their forms, a response read into an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openai.types.responses import (
    Response,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
)

from catalog.canonical import digest
from server.backends.backend import Request, Stop, Usage
from server.backends.ladder import Form
from server.backends.thinking import output_limit

__all__ = ["FUNCTION", "STRICT", "Answer", "chat_fields", "response_answer", "responses_fields"]

STRICT = Form("strict json_schema", "schema")
FUNCTION = Form("forced function", "json")


@dataclass(frozen=True, slots=True)
class Answer:
    texts: tuple[str, ...]
    stops: tuple[Stop, ...]
    model: str
    usage: Usage | None
    """None: the provider reported none."""
    written_tokens: int = 0


def responses_fields(request: Request, model: str, form: Form, closed: Any) -> dict[str, Any]:  # noqa: ANN401
    fields: dict[str, Any] = {
        "model": model,
        "input": [{"role": message.role, "content": message.text} for message in request.messages],
        "max_output_tokens": output_limit(request.max_output_tokens),
        "store": False,
        **_shared_fields(request),
    }
    if form == STRICT:
        schema = {"type": "json_schema", "name": request.schema_name, "strict": True, "schema": closed}
        fields["text"] = {"format": schema}
    elif form == FUNCTION:
        fields["tools"] = [{"type": "function", **_function(request)}]
        fields["tool_choice"] = {"type": "function", "name": request.schema_name}
    return fields


def chat_fields(request: Request, model: str, form: Form, closed: Any) -> dict[str, Any]:  # noqa: ANN401
    fields: dict[str, Any] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.text} for message in request.messages],
        "max_completion_tokens": output_limit(request.max_output_tokens),
        "n": request.n,
        "stream_options": {"include_usage": True},
        **_shared_fields(request),
    }
    if request.seed is not None:
        fields["seed"] = request.seed
    if form == STRICT:
        schema = {"name": request.schema_name, "strict": True, "schema": closed}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif form == FUNCTION:
        fields["tools"] = [{"type": "function", "function": _function(request)}]
        fields["tool_choice"] = {"type": "function", "function": {"name": request.schema_name}}
    return fields


def _shared_fields(request: Request) -> dict[str, Any]:
    """Return the temperature, and the key that leads requests with one prefix to one cache."""
    prefix = request.messages[0]
    fields: dict[str, Any] = {"prompt_cache_key": digest({"role": prefix.role, "text": prefix.text})[-32:]}
    return fields if request.temperature is None else fields | {"temperature": request.temperature}


def _function(request: Request) -> dict[str, Any]:
    return {
        "name": request.schema_name,
        "description": "Give the answer by calling this function once.",
        "parameters": request.schema,
        "strict": False,
    }


def response_answer(response: Response) -> Answer:
    texts: list[str] = []
    refusals: list[str] = []
    for item in response.output:
        match item:
            case ResponseOutputMessage(content=content):
                texts += [part.text for part in content if isinstance(part, ResponseOutputText)]
                refusals += [part.refusal for part in content if isinstance(part, ResponseOutputRefusal)]
            case ResponseFunctionToolCall(arguments=arguments):
                texts.append(arguments)
            case _:
                pass
    reported = response.usage
    usage, written = None, 0
    if reported is not None:
        inputs, outputs = reported.input_tokens_details, reported.output_tokens_details
        usage = Usage(
            input_tokens=reported.input_tokens,
            cached_tokens=_detail(inputs, "cached_tokens"),
            output_tokens=reported.output_tokens,
            reasoning_tokens=_detail(outputs, "reasoning_tokens"),
        )
        written = _detail(inputs, "cache_write_tokens")
    return Answer(
        texts=("".join(refusals or texts),),
        stops=(_stop(response, refused=bool(refusals)),),
        model=response.model,
        usage=usage,
        written_tokens=written,
    )


def _detail(details: object, name: str) -> int:
    """Return a count that a gateway may leave out; the SDK does not check what it reads."""
    return getattr(details, name, None) or 0


def _stop(response: Response, *, refused: bool) -> Stop:
    reason = response.incomplete_details.reason if response.incomplete_details is not None else None
    if refused or reason == "content_filter":
        return "refusal"
    return "length" if reason == "max_output_tokens" else "end"
