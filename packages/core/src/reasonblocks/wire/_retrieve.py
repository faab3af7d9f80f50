"""The bodies of a search for patterns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import AliasChoices, Field

from ..requests import Retrieve
from ..types import ETrace, Pattern
from ._base import Answer, Number, Request, Tier, Unit

MAX_TEXTS = 16
"""The most texts of one search, each of which is embedded; this library sends five."""


class RetrieveRequest(Request):
    """POST /traces/retrieve. `texts` are those of the newest steps, the newest last; older clients send `context`."""

    context: str = ""
    texts: list[str] | None = Field(default=None, max_length=MAX_TEXTS)
    tier: Tier = Field(validation_alias=AliasChoices("tier", "level"))
    top_k: int = Field(default=5, ge=1, le=50)
    similarity: Unit | None = None
    model: str = ""
    failure_type: str | None = None
    kind: str | None = None


class WireTrace(Answer):
    """A retrieved pattern. `level` equals `tier`, for older clients."""

    tier: Tier
    level: Tier
    similarity: Number = 1.0
    pattern_id: str
    fields: dict[str, Any] = Field(default_factory=dict)
    failure_type: str | None = None
    model_family: str = "any"
    source_trace_id: str | None = None
    org_id: str | None = None
    kinds: list[str] = Field(default_factory=list)
    gate_threshold: Number | None = None
    revision: int = 1
    stats: dict[str, int] = Field(default_factory=dict)
    requires_signal: bool = False

    def trace(self) -> ETrace:
        """Return the retrieved pattern as a value."""
        pattern = Pattern(
            id=self.pattern_id,
            tier=self.tier,
            fields=dict(self.fields),
            org_id=self.org_id,
            failure_type=self.failure_type,
            kinds=tuple(self.kinds),
            model_family=self.model_family,
            gate_threshold=self.gate_threshold,
            source_trace_id=self.source_trace_id,
            revision=self.revision,
            stats=dict(self.stats),
            requires_signal=self.requires_signal,
        )
        return ETrace(pattern=pattern, similarity=self.similarity)


class RetrieveResponse(Answer):
    """The retrieved patterns, the best first; none is a normal answer."""

    traces: list[WireTrace] = Field(default_factory=list)


def retrieve_request(request: Retrieve) -> RetrieveRequest:
    """Return the body of a search."""
    return RetrieveRequest(
        context=request.query,
        texts=list(request.texts),
        tier=request.tier,
        top_k=min(request.top_k, 50),
        similarity=min(max(request.similarity, 0.0), 1.0),
        model=request.model,
        failure_type=request.failure_type,
        kind=request.kind,
    )


def retrieve_response(found: Sequence[ETrace]) -> RetrieveResponse:
    """Return the body of an answer to a search."""
    return RetrieveResponse(traces=[_wire_trace(trace) for trace in found])


def _wire_trace(trace: ETrace) -> WireTrace:
    pattern = trace.pattern
    return WireTrace(
        tier=pattern.tier,
        level=pattern.tier,
        similarity=trace.similarity,
        pattern_id=pattern.id,
        fields=dict(pattern.fields),
        failure_type=pattern.failure_type,
        model_family=pattern.model_family,
        source_trace_id=pattern.source_trace_id,
        org_id=pattern.org_id,
        kinds=list(pattern.kinds),
        gate_threshold=pattern.gate_threshold,
        revision=pattern.revision,
        stats=dict(pattern.stats),
        requires_signal=pattern.requires_signal,
    )
