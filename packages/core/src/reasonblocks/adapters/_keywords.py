"""Reads the run options that a function of an adapter takes as keywords, and refuses what it does not know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypedDict

from ..exceptions import ConfigError
from ..types import JSON, Placement
from ._options import RunOptions


class RunKeywords(TypedDict, total=False):
    """`RunOptions` as keywords, for functions whose framework has keywords of its own."""

    run_id: str | None
    agent_name: str | None
    task: str | None
    model: str | None
    codebase_id: str | None
    org_id: str | None
    project_id: str | None
    task_profile: str | None
    metadata: Mapping[str, JSON] | None
    placement: Placement | None


def split_keywords(
    function: str, given: Mapping[str, Any], others: Iterable[str] = ()
) -> tuple[RunOptions, dict[str, Any]]:
    """The run options in `given`, and what else is in it: the framework's own, whose names are `others`.

    Raises `ConfigError` for a name that is neither, with the nearest one that is.
    """
    ours = {field.name for field in fields(RunOptions)}
    known = {*ours, *others}
    for name in given:
        if name not in known:
            raise ConfigError.unknown(f"a keyword of {function}", name, sorted(known))
    mine = {name: value for name, value in given.items() if name in ours}
    return RunOptions(**mine), {name: value for name, value in given.items() if name not in ours}
