"""How a vector database is searched so that it gives what a matrix would: asked on until nothing can be missing."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from ...patterns import Curve, best, gate, helps, standing, visible
from ...requests import Retrieve
from ...types import ETrace, Pattern
from .points import Ask, Hit, pattern_in
from .table import SLACK, Rows, cosine

__all__ = ["Asking", "nearest", "standing_rules"]

MORE = 16
"""Points asked for at first beyond the patterns that are wanted: some patterns have several."""
GROWTH = 4
Asking: TypeAlias = "Generator[Ask, list[Hit], tuple[ETrace, ...]]"
"""Yields what to ask and is sent the points: the same for a store that waits and for one that awaits."""


def standing_rules(request: Retrieve, layer: Iterable[Pattern]) -> Asking:
    """Tier e3, with those of a layer."""
    hits = yield Ask.of(request)
    return standing(chain(map(pattern_in, hits), layer), request)


def nearest(request: Retrieve, query: Rows, curve: Curve, lowest_gate: float | None, layer: Iterable[ETrace]) -> Asking:
    """Tiers e1 and e2: the best of the points and of `layer`. `lowest_gate` is that of any pattern stored."""
    least = min(request.similarity, request.similarity if lowest_gate is None else lowest_gate)
    threshold = max(-2.0, min(2.0, curve.reach(least) - SLACK))
    ask = replace(Ask.of(request), vector=query, threshold=threshold, limit=request.top_k + MORE)
    found: dict[str, ETrace] = {}
    while True:
        hits = yield ask
        _judge(hits, found, request, query, curve)
        if len(hits) < ask.limit:
            break
        left = curve(hits[-1].score + SLACK)  # the most that any other point is worth
        if _are_enough(found.values(), request, left):
            break
        ask = replace(ask, limit=ask.limit * GROWTH, gate_most=left, gated=left < request.similarity)
    return best([*found.values(), *layer], request)


def _judge(hits: list[Hit], found: dict[str, ETrace], request: Retrieve, query: Rows, curve: Curve) -> None:
    """Each pattern with its best exemplar; of a replaced one, the newest revision counts."""
    for hit in hits:
        if hit.vector is None:
            continue
        pattern = pattern_in(hit)
        if not visible(pattern, request):
            continue
        new = ETrace(pattern=pattern, similarity=curve(cosine(hit.vector[None], query)))
        old = found.get(pattern.id)
        if old is None or _weight(new) > _weight(old):
            found[pattern.id] = new


def _weight(trace: ETrace) -> tuple[int, float]:
    return trace.pattern.revision, trace.similarity


def _are_enough(found: Iterable[ETrace], request: Retrieve, left: float) -> bool:
    """Are there `top_k` that pass and help and that no other point can come before?"""
    sure = [
        trace
        for trace in found
        if trace.similarity > left
        and trace.similarity >= gate(trace.pattern, request.similarity)
        and helps(trace.pattern)
    ]
    return len(sure) >= request.top_k
