"""Spans of what the bank does, beside those of the protocol library: workflows, plans, calls, searches.

Names and attributes follow OpenTelemetry's GenAI conventions, our own are under `skillbank.`. Without
a reader nothing is recorded. Spans are written to a file as lines of JSON, and sent to a collector
where the standard variables name one and the extra `otel` is installed. Content is left out unless
it is asked for.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from pydantic import JsonValue

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

__all__ = ["Attributes", "open_telemetry", "record_evaluation", "span", "with_content"]

_LOG = logging.getLogger(__name__)
_tracer = trace.get_tracer("skillbank")
_COLLECTORS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_LONGEST: Final = 8_192

Attributes = Mapping[str, str | int | float | bool | None]


@contextmanager
def span(name: str, operation: str, attributes: Attributes | None = None) -> Generator[trace.Span]:
    """Record what happens inside as a span; its error type where it raises.

    Args:
        name: operation and target, such as `execute_tool clock.now`.
        operation: of the GenAI conventions.
        attributes: those that are None are left out.
    """
    given = {key: value for key, value in (attributes or {}).items() if value is not None}
    with _tracer.start_as_current_span(
        name,
        attributes={"gen_ai.operation.name": operation, **given},
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield current
        except BaseException as error:
            current.set_attribute("error.type", type(error).__name__)
            current.set_status(trace.StatusCode.ERROR)
            raise


def record_evaluation(name: str, *, passed: bool, score: float | None = None) -> None:
    """Record what was found of a run, under the span it belongs to."""
    label = "passed" if passed else "failed"
    with span(
        "gen_ai.evaluation.result",
        "evaluate",
        {
            "gen_ai.evaluation.name": name,
            "gen_ai.evaluation.score.label": label,
            "gen_ai.evaluation.score.value": float(passed) if score is None else score,
        },
    ):
        pass


def with_content(current: trace.Span, key: str, value: JsonValue) -> None:
    """Add content to a span where the reader asked for it; values are bounded."""
    if _Content.wanted and current.is_recording():
        current.set_attribute(key, json.dumps(value, default=str)[:_LONGEST])


class _Content:
    """Whether content is wanted: one reader per process, as OpenTelemetry has it."""

    wanted = False


@contextmanager
def open_telemetry(
    file: Path | None, environment: Mapping[str, str], *, content: bool = False
) -> Generator[None]:
    """Have spans read until left: into a file, by a collector, or both.

    Args:
        file: takes a line of JSON for each span; None: none does.
        environment: names a collector by the standard variables.
        content: whether arguments and results are in the spans.
    """
    to_collector = any(environment.get(name) for name in _COLLECTORS)
    if file is None and not to_collector:
        yield
        return
    try:
        provider = _provider(file, to_collector=to_collector)
    except ImportError as error:
        if file is not None:
            raise RuntimeError(
                f"spans need the extra otel: pip install 'skillbank[otel]' ({error})"
            ) from error
        _LOG.warning("no spans are sent: pip install 'skillbank[otel]' (%s)", error)
        yield
        return
    _Content.wanted = content
    try:
        yield
    finally:
        _Content.wanted = False
        provider.shutdown()


def _provider(file: Path | None, *, to_collector: bool) -> Any:  # noqa: ANN401  (the extra's type)
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "skillbank"}))
    if file is not None:
        provider.add_span_processor(SimpleSpanProcessor(_json_lines(file)))
    if to_collector:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def _json_lines(path: Path) -> Any:  # noqa: ANN401  (the extra's type)
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    lock = Lock()

    class JsonLines(SpanExporter):
        """Adds a line for each span to a file of its owner alone."""

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            lines = "".join(json.dumps(_line(each), default=str) + "\n" for each in spans)
            with lock:
                os.write(descriptor, lines.encode())
            return SpanExportResult.SUCCESS

        def shutdown(self) -> None:
            os.close(descriptor)

    return JsonLines()


def _line(each: ReadableSpan) -> dict[str, Any]:
    context, parent = each.get_span_context(), each.parent
    return {
        "name": each.name,
        "trace_id": None if context is None else f"{context.trace_id:032x}",
        "span_id": None if context is None else f"{context.span_id:016x}",
        "parent_id": None if parent is None else f"{parent.span_id:016x}",
        "kind": each.kind.name.lower(),
        "start_seconds": (each.start_time or 0) / 1e9,
        "seconds": ((each.end_time or 0) - (each.start_time or 0)) / 1e9,
        "status": each.status.status_code.name.lower(),
        "attributes": dict(each.attributes or {}),
    }
