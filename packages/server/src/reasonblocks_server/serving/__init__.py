"""Answers the requests of the HTTP API without I/O of its own, for any server of the API."""

from __future__ import annotations

from ._evaluations import DEFAULT_PROFILE, Evaluations, answer_retrieve, answer_score
from ._findings import (
    answer_clear,
    answer_codebases,
    answer_invalidate,
    answer_list,
    answer_recall,
    answer_store,
)

__all__ = [
    "DEFAULT_PROFILE",
    "Evaluations",
    "answer_clear",
    "answer_codebases",
    "answer_invalidate",
    "answer_list",
    "answer_recall",
    "answer_retrieve",
    "answer_score",
    "answer_store",
]  # fmt: skip
