"""Lists experiments, and reports on them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel

from ..auth import Caller
from ..errors import ApiError
from ..experiments import Report, report_of
from ..server import Used
from ..values import Principal
from ._common import MAX_ID_CHARS, NO_NUL, check_whole_org, problems

router = APIRouter(tags=["experiments"])
Reader = Annotated[Principal, Caller("read")]


class Experiment(BaseModel):
    """An experiment, the number of its runs, and the time of the first one."""

    experiment_id: str
    runs: int
    started: float


class Experiments(BaseModel):
    """The experiments of an org."""

    experiments: list[Experiment]


@router.get("/monitor/experiments", responses=problems())
def list_experiments(caller: Reader, server: Used) -> Experiments:
    """List the experiments."""
    check_whole_org(caller)
    rows = server.storage.runs.experiments(caller.org_id)
    found = [Experiment(experiment_id=name, runs=runs, started=started) for name, runs, started in rows]
    return Experiments(experiments=found)


@router.get("/monitor/experiments/{experiment_id:path}/report", responses=problems(404))
def report(
    experiment_id: Annotated[str, Path(min_length=1, max_length=MAX_ID_CHARS, pattern=NO_NUL)],
    caller: Reader,
    server: Used,
) -> Report:
    """Compare the steered runs of an experiment with the observed ones.

    `newest_only` is true if it has more than 100,000 runs: then the newest so many are compared.
    """
    rows, more = server.storage.runs.units(caller.org_id, experiment_id, project_id=caller.project_id)
    if not rows:
        raise ApiError(404, f"there is no experiment {experiment_id!r}")
    return report_of(rows, newest_only=more)
