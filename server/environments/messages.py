"""Reading what clients send: bounded bodies, JSON objects, and fields of the right type."""

from __future__ import annotations

import json
from typing import TypeVar, cast

from starlette.requests import Request

from server.environments.errors import BadRequest, EnvironmentFailure
from server.environments.world import JsonObject

__all__ = ["error_body", "field_of", "object_of", "read_body", "read_object"]

_T = TypeVar("_T")


async def read_body(request: Request, most_bytes: int) -> JsonObject:
    """Return the JSON object that a request holds, an empty one where it holds nothing.

    Raises:
        BadRequest: it is too large, or no JSON object.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most_bytes:
            raise BadRequest(f"the body is over {most_bytes} bytes", code="TOO_LARGE", status=413)
    return read_object(body) if body.strip() else {}


def read_object(text: bytes | str) -> JsonObject:
    """Return the JSON object that a message is.

    Raises:
        BadRequest: it is none.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"not JSON: {error}", code="INVALID_JSON") from error
    if not isinstance(value, dict):
        raise BadRequest("a message is a JSON object", code="INVALID_JSON")
    return cast("JsonObject", value)


def field_of(message: JsonObject, name: str, kind: type[_T]) -> _T | None:
    """Return a text, number or boolean field, None where it is not there or null.

    Raises:
        BadRequest: it has another type.
    """
    value = cast("object", message.get(name))
    if value is None:
        return None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BadRequest(f"{name!r} has to be of type {kind.__name__}", code="VALIDATION_ERROR", status=422)
    return value


def object_of(message: JsonObject, name: str) -> JsonObject | None:
    """Return a field that is an object, None where it is not there or null.

    Raises:
        BadRequest: it has another type.
    """
    value = message.get(name)
    if value is not None and not isinstance(value, dict):
        raise BadRequest(f"{name!r} has to be an object", code="VALIDATION_ERROR", status=422)
    return value


def error_body(error: EnvironmentFailure) -> JsonObject:
    """Return what a client is told."""
    return {"message": str(error), "code": error.code}
