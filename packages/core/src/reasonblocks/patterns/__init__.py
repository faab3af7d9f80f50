"""The rules for patterns that are the same in every store: form, validation, visibility, and ranking."""

from __future__ import annotations

from ._check import EXEMPLAR_CHARS, EXEMPLARS, NAME_BYTES, check_pattern, exemplars
from ._json import COUNTED, content_of, pattern_json, pattern_of, revise_pattern
from ._rank import Curve, SimilarityCurves, best, fits, gate, helpful, helps, place, standing, visible

__all__ = [
    "COUNTED",
    "EXEMPLARS",
    "EXEMPLAR_CHARS",
    "NAME_BYTES",
    "Curve",
    "SimilarityCurves",
    "best",
    "check_pattern",
    "content_of",
    "exemplars",
    "fits",
    "gate",
    "helpful",
    "helps",
    "pattern_json",
    "pattern_of",
    "place",
    "revise_pattern",
    "standing",
    "visible",
]
