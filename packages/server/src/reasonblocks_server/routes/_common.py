"""Defines the form of errors, the types of parameters, and the checks that several routes share."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from ..errors import ApiError
from ..server import Server
from ..values import Principal, RunRow

NO_NUL = r"^[^\x00]*$"
"""Matches what every database can store as text."""
MAX_ID_CHARS = 512
"""Characters of an id. The clients of this project send at most 200 bytes."""
MAX_TIME = 1e11
"""The latest time that is accepted, in seconds since the epoch."""

Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS, pattern=NO_NUL)]
Text = Annotated[str, Field(pattern=NO_NUL)]
Name = Annotated[str, Field(max_length=200, pattern=NO_NUL)]
Chosen = Annotated[str, Query(max_length=500, pattern=NO_NUL)]
RunId = Annotated[str, Path(min_length=1, max_length=MAX_ID_CHARS, pattern=NO_NUL, description="The id of a run.")]
Since = Annotated[float | None, Query(ge=0, le=MAX_TIME, description="Seconds since the epoch.")]


class Given(BaseModel):
    """A request. Unknown fields are ignored, because clients of other versions send them."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())


class Problem(BaseModel):
    """An error, with the reason as a text for people."""

    detail: str


REASONS = {
    400: "The request cannot be read; its body may not be JSON.",
    401: "The key is missing or not valid.",
    403: "The key does not allow this.",
    404: "It does not exist, or belongs to another org or project.",
    409: "The state of the object does not allow this.",
    412: "It has been changed in the meantime.",
    413: "The body is too large.",
    422: "A field is not valid; the detail begins with its name.",
    429: "Too many requests or notes; `Retry-After` is the seconds to wait.",
    503: "The database is not available, or the server is busy.",
}
ALWAYS = (400, 401, 403, 413, 422, 429, 503)


def problems(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return the declarations of a route's errors: the errors of every route, and `more`."""
    return {status: {"model": Problem, "description": REASONS[status]} for status in sorted({*ALWAYS, *more})}


def run_of(server: Server, caller: Principal, run_id: str) -> RunRow:
    """Return a run that the caller may see. Raises `ApiError` with status 404."""
    row = server.storage.runs.get(caller.org_id, run_id)
    if row is None or caller.project_id not in (None, row.project_id):
        raise ApiError(404, f"there is no run {run_id!r}")
    return row


def check_whole_org(caller: Principal) -> None:
    """Refuse a key that belongs to one project. Raises `ApiError` with status 403."""
    if caller.project_id is not None:
        raise ApiError(403, "the key belongs to one project, and this request concerns the whole org")
