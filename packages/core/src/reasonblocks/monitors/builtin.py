"""The table of the built-in monitors, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..types import JSON
from . import (
    claim_contradiction,
    cyclic_compression,
    late_sprawl,
    semantic_loop,
    silent_topic_drift,
    verification_skip,
)
from .features import Features
from .finding import Finding

__all__ = ["BY_NAME", "MONITORS", "BuiltIn"]

CLAIM_CONTRADICTION_FIRES = 0.6
"""Scores at and above which each fires. Each monitor's own scores are laid out around .6: what is certain lies over
it, what is only worth a note under it; so over the recorded runs each fires on at most 6 % of an agent's successes."""
SEMANTIC_LOOP_FIRES = 0.6
VERIFICATION_SKIP_FIRES = 0.6
CYCLIC_COMPRESSION_FIRES = 0.6
LATE_SPRAWL_FIRES = 0.6
SILENT_TOPIC_DRIFT_FIRES = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """One row of the table. `fires` is the score at and above which the monitor fires."""

    name: str
    failure_type: str
    fires: float
    observe: Callable[[Features, JSON], Finding]
    say: Callable[[Finding, int], str]


MONITORS = (
    BuiltIn(
        name=claim_contradiction.NAME,
        failure_type=claim_contradiction.FAILURE_TYPE,
        fires=CLAIM_CONTRADICTION_FIRES,
        observe=claim_contradiction.observe,
        say=claim_contradiction.say,
    ),
    BuiltIn(
        name=semantic_loop.NAME,
        failure_type=semantic_loop.FAILURE_TYPE,
        fires=SEMANTIC_LOOP_FIRES,
        observe=semantic_loop.observe,
        say=semantic_loop.say,
    ),
    BuiltIn(
        name=verification_skip.NAME,
        failure_type=verification_skip.FAILURE_TYPE,
        fires=VERIFICATION_SKIP_FIRES,
        observe=verification_skip.observe,
        say=verification_skip.say,
    ),
    BuiltIn(
        name=cyclic_compression.NAME,
        failure_type=cyclic_compression.FAILURE_TYPE,
        fires=CYCLIC_COMPRESSION_FIRES,
        observe=cyclic_compression.observe,
        say=cyclic_compression.say,
    ),
    BuiltIn(
        name=late_sprawl.NAME,
        failure_type=late_sprawl.FAILURE_TYPE,
        fires=LATE_SPRAWL_FIRES,
        observe=late_sprawl.observe,
        say=late_sprawl.say,
    ),
    BuiltIn(
        name=silent_topic_drift.NAME,
        failure_type=silent_topic_drift.FAILURE_TYPE,
        fires=SILENT_TOPIC_DRIFT_FIRES,
        observe=silent_topic_drift.observe,
        say=silent_topic_drift.say,
    ),
)
BY_NAME: Mapping[str, BuiltIn] = {row.name: row for row in MONITORS}
