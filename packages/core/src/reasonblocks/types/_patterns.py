"""A stored lesson, and one that was retrieved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ._json import JSON
from ._steering import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A stored lesson.

    `fields` are texts, by tier: e1 `observation, recommended_action` (and `task_context_embedding_text`); e2
    `diagnosis, intervention, anti_pattern` (and `trigger_state: {trajectory_description}`); e3 `instruction`.
    `exemplars` are what similarity is measured against, by the best of them; without them the field in brackets is.
    `gate_threshold` replaces the tier's similarity for this pattern. `stats` counts `retrieved`, `injected`,
    `recovered`, `not_recovered`. `requires_signal`: only a search that names its `failure_type` sees it, so that its
    gate may be lower. `off`: never retrieved, and it hides a pattern of the same id in a layer below.
    """

    id: str
    tier: Tier
    fields: Mapping[str, JSON] = field(default_factory=dict)
    org_id: str | None = None
    failure_type: str | None = None
    model_family: str = "any"
    exemplars: tuple[str, ...] = ()
    gate_threshold: float | None = None
    source_trace_id: str | None = None
    revision: int = 1
    created_at: str | None = None
    stats: Mapping[str, int] = field(default_factory=dict)
    requires_signal: bool = False
    off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ETrace:
    """A pattern that was retrieved. `similarity` in [0, 1]; 1 for tier e3, which is not searched."""

    pattern: Pattern
    similarity: float = 1.0
