"""The bodies of the HTTP API, which client and server share, and their conversions from and to our values.

Requests ignore unknown fields, because clients of other versions send them. Answers are read strictly: a number in
quotes or a NaN is an error.
"""

from __future__ import annotations

from ._base import (
    PREFIX,
    EventsRequest,
    EventsResponse,
    ScoreRequest,
    ScoreResponse,
    WireRefused,
)
from ._evaluate import (
    MAX_INJECTED,
    EvaluateRequest,
    EvaluateResponse,
    evaluate_request,
    evaluation_response,
    injected_of,
)
from ._findings import (
    MOST_LISTED,
    MOST_STORED,
    ClearResponse,
    CodebaseList,
    FindingList,
    FindingRequest,
    FindingsRequest,
    FindingsResponse,
    InvalidateRequest,
    InvalidateResponse,
    RecallRequest,
    RecallResponse,
    WireCodebase,
    WireFinding,
    WireRecalled,
)
from ._retrieve import RetrieveRequest, RetrieveResponse, WireTrace, retrieve_request, retrieve_response
from ._step import WireStep

__all__ = [
    "MAX_INJECTED", "MOST_LISTED", "MOST_STORED", "PREFIX", "ClearResponse", "CodebaseList",
    "EvaluateRequest", "EvaluateResponse", "EventsRequest", "EventsResponse", "FindingList", "FindingRequest",
    "FindingsRequest", "FindingsResponse", "InvalidateRequest", "InvalidateResponse", "RecallRequest",
    "RecallResponse", "RetrieveRequest", "RetrieveResponse", "ScoreRequest", "ScoreResponse", "WireCodebase",
    "WireFinding", "WireRecalled", "WireRefused", "WireStep", "WireTrace", "evaluate_request", "evaluation_response",
    "injected_of", "retrieve_request", "retrieve_response",
]  # fmt: skip
