"""The base of all bodies: requests ignore unknown fields, answers are read strictly."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Tier = Literal["e1", "e2", "e3"]
PREFIX = "/v1"


class Request(BaseModel):
    """A request. Clients of other versions may send more fields."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=(), populate_by_name=True)


class Answer(BaseModel):
    """An answer. A number in quotes or a NaN is an error."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=(), strict=True)


class ScoreRequest(Request):
    """POST /score."""

    text: str
    context: str | None = None


class ScoreResponse(Answer):
    """The difficulty of a text."""

    difficulty: Unit


class EventsRequest(Request):
    """POST /monitor/events: events as their `as_dict` writes them."""

    events: list[dict[str, Any]]


class WireRefused(Answer):
    """An event that was not accepted."""

    index: int
    detail: str


class EventsResponse(Answer):
    """The number of new events, that of events that were known already, and the refused ones."""

    accepted: int = 0
    repeated: int = 0
    refused: list[WireRefused] = Field(default_factory=list)
