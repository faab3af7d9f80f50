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


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """One row of the table."""

    name: str
    failure_type: str
    observe: Callable[[Features, JSON], Finding]
    say: Callable[[Finding, int], str]


MONITORS = tuple(
    BuiltIn(name=one.NAME, failure_type=one.FAILURE_TYPE, observe=one.observe, say=one.say)
    for one in (
        claim_contradiction,
        semantic_loop,
        verification_skip,
        cyclic_compression,
        late_sprawl,
        silent_topic_drift,
    )
)
BY_NAME: Mapping[str, BuiltIn] = {row.name: row for row in MONITORS}
