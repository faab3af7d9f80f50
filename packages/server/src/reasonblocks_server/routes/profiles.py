"""Lists the monitors, and stores the team's task profiles: the monitors' weights."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from reasonblocks.monitors.builtin import MONITORS, WEIGHTS, resolve_weights

from ..auth import Caller
from ..errors import ApiError
from ..server import Used
from ..serving import DEFAULT_PROFILE
from ..values import Principal
from ._common import Given, check_whole_org, problems

router = APIRouter(tags=["profiles"])
Reader = Annotated[Principal, Caller("read")]
Admin = Annotated[Principal, Caller("admin")]
Weight = Annotated[float, Field(ge=0, le=1)]
BUILT_IN = 0
"""The revision of a built-in profile that the org has not changed."""


class Scorer(BaseModel):
    """A monitor."""

    name: str
    failure_type: str


class Scorers(BaseModel):
    """The monitors of the server."""

    scorers: list[Scorer]


class ProfileGiven(Given):
    """A task profile.

    A monitor without a weight has that of the built-in profile of this name, or else of "coding". `revision` is that of
    the profile that it replaces, 0 for a new or a built-in one.
    """

    name: str = Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")
    weights: dict[str, Weight] = Field(default_factory=dict)
    revision: int = Field(default=BUILT_IN, ge=0, le=2**31 - 1)


class Profile(BaseModel):
    """A task profile with all weights. The `revision` of a built-in one is 0."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    weights: dict[str, float]
    revision: int


class Profiles(BaseModel):
    """The task profiles of an org."""

    profiles: list[Profile]


@router.get("/monitor/scorers", responses=problems())
def list_scorers(caller: Reader, server: Used) -> Scorers:
    """List the monitors."""
    return Scorers(scorers=[Scorer(name=row.name, failure_type=row.failure_type) for row in MONITORS])


@router.get("/monitor/profiles", responses=problems())
def list_profiles(caller: Reader, server: Used) -> Profiles:
    """List the task profiles, including the built-in ones."""
    own = {row.name: Profile.model_validate(row) for row in server.storage.profiles.list(caller.org_id)}
    built_in = {name: Profile(name=name, weights=dict(weights), revision=BUILT_IN) for name, weights in WEIGHTS.items()}
    return Profiles(profiles=list({**built_in, **own}.values()))


@router.post("/monitor/profiles", responses=problems(400, 412))
def put_profile(given: ProfileGiven, caller: Admin, server: Used) -> Profile:
    """Add or replace a task profile, if it still has the given revision."""
    check_whole_org(caller)
    base = given.name if given.name in WEIGHTS else DEFAULT_PROFILE
    weights = resolve_weights(base, given.weights)
    row = server.storage.profiles.put(caller.org_id, given.name, weights, revision=given.revision or None)
    if row is None:
        raise ApiError(412, f"the profile {given.name!r} does not have the revision {given.revision}")
    server.audit(caller, "profile.put", f"{row.name} revision {row.revision}")
    return Profile.model_validate(row)
