"""Reads the spans of traces from OTLP/JSON, as the file exporter of the OpenTelemetry Collector writes it.

Source: the JSON encoding of OTLP, version 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from reasonblocks.exceptions import RecordError
from reasonblocks.types import JSON

from ._files import Record
from ._groups import Groups
from ._run import reason

MAX_LEVELS = 100
"""Levels of an attribute's value that are read, like those of a copied message."""


class _Attribute(BaseModel):
    key: str = ""
    value: Any = None


class _Event(BaseModel):
    name: str = ""
    attributes: list[_Attribute] = []


class _Status(BaseModel):
    code: int | str | None = None
    message: str = ""


class _Span(BaseModel):
    trace: str = Field(alias="traceId")
    id: str = Field(alias="spanId")
    parent: str | None = Field(default=None, alias="parentSpanId")
    name: str = ""
    started: int = Field(default=0, alias="startTimeUnixNano")
    attributes: list[_Attribute] = []
    events: list[_Event] = []
    status: _Status = Field(default_factory=_Status)


class _ScopeSpans(BaseModel):
    spans: list[_Span] = []


class _Resource(BaseModel):
    attributes: list[_Attribute] = []


class _ResourceSpans(BaseModel):
    resource: _Resource = Field(default_factory=_Resource)
    scopes: list[_ScopeSpans] = Field(default=[], alias="scopeSpans")


class _Request(BaseModel):
    resources: list[_ResourceSpans] = Field(alias="resourceSpans")


ERROR = (2, "STATUS_CODE_ERROR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span with its attributes by name, and the service that made it."""

    trace: str
    id: str
    parent: str | None
    name: str
    started: int
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...]
    failed: bool
    failure: str
    service: str

    def text(self, *names: str) -> str | None:
        """Return the first of these attributes that holds text."""
        found = (self.attributes.get(name) for name in names)
        return next((value for value in found if isinstance(value, str) and value), None)

    def count(self, *names: str) -> int | None:
        """Return the first of these attributes that holds a whole number."""
        found = (self.attributes.get(name) for name in names)
        return next((value for value in found if type(value) is int), None)


@dataclass(slots=True, kw_only=True)
class Trace:
    """The spans of one trace, in the order of the file, and the line of the first."""

    id: str
    line: int
    spans: dict[str, Span] = field(default_factory=dict)


def traces_of(file: str, records: Iterable[Record | RecordError]) -> Iterator[Trace | RecordError]:
    """Yield the traces, each a few traces after its root span, which is exported last."""
    traces: Groups[Trace] = Groups()
    for record in records:
        if isinstance(record, RecordError):
            yield record
            continue
        if is_other_signal(record.value):
            continue
        try:
            request = _Request.model_validate(record.value)
        except ValidationError as error:
            yield RecordError(file, record.line, reason(error))
            continue
        for span in _spans(request):
            trace = traces.find_or_add(span.trace, partial(Trace, id=span.trace, line=record.line))
            trace.spans.setdefault(span.id, span)
            if not span.parent:
                traces.end(span.trace)
        yield from traces.due()
    yield from traces.rest()


def is_other_signal(value: JSON) -> bool:
    """Return True for a request of logs or metrics, which may lie in the same file."""
    keys = value.keys() if isinstance(value, dict) else set[str]()
    return "resourceSpans" not in keys and bool({"resourceLogs", "resourceMetrics"} & keys)


def _spans(request: _Request) -> Iterator[Span]:
    for resource in request.resources:
        service = _decoded(resource.resource.attributes).get("service.name")
        for scope in resource.scopes:
            for span in scope.spans:
                yield _span(span, service if isinstance(service, str) else "")


def _span(span: _Span, service: str) -> Span:
    attributes = _decoded(span.attributes)
    failed = span.status.code in ERROR
    kind = attributes.get("error.type")
    return Span(
        trace=span.trace,
        id=span.id,
        parent=span.parent or None,
        name=span.name,
        started=span.started,
        attributes=attributes,
        events=tuple((event.name, _decoded(event.attributes)) for event in span.events),
        failed=failed,
        failure=(kind if isinstance(kind, str) else span.status.message) if failed else "",
        service="" if service.startswith("unknown_service") else service,
    )


def _decoded(attributes: Iterable[_Attribute]) -> dict[str, Any]:
    return {attribute.key: any_value(attribute.value) for attribute in attributes}


def any_value(value: Any, levels: int = MAX_LEVELS) -> Any:
    """Return the value in an `AnyValue` of OTLP; None for an unknown kind."""
    if not isinstance(value, Mapping) or levels == 0:
        return None
    for kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if kind in value:
            return value[kind]
    if "intValue" in value:
        return _int(value["intValue"])
    held = value.get("arrayValue", value.get("kvlistValue"))
    items = held.get("values") if isinstance(held, Mapping) else None
    found = items if isinstance(items, list) else []
    if "arrayValue" in value:
        return [any_value(item, levels - 1) for item in found]
    pairs = (item for item in found if isinstance(item, Mapping))
    return {str(item.get("key")): any_value(item.get("value"), levels - 1) for item in pairs} if held else None


def _int(value: object) -> int | None:
    """Return a whole number; the JSON encoding writes 64 bits as text."""
    try:
        return int(value) if isinstance(value, (str, int)) and len(str(value)) < 20 else None
    except ValueError:
        return None
