"""Reads stored findings one by one, so that one that cannot be read is left out and named in the log."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields

from ...types import Finding
from ...util.text import preview

logger = logging.getLogger("reasonblocks")

FIELDS = tuple(field.name for field in fields(Finding))
NAME_CHARS = 120
"""Characters of a finding's name that are logged."""
MOST_NAMED = 100
"""Findings that are named in the log, by each store: a damaged store must not fill it."""


class LeftOut:
    """The findings that a store has left out, each of which is logged once."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._named: set[str] = set()

    def add(self, name: str, reason: object) -> None:
        name = preview(name, NAME_CHARS)
        if name not in self._named and len(self._named) < MOST_NAMED:
            self._named.add(name)
            text = "%s: the finding %s cannot be read (%s): it is left out until it is stored again (logged once)"
            logger.warning(text, self._store, name, reason)


def finding_of(stored: object) -> Finding:
    """Return the finding of stored fields. Raises `ValueError` with what is wrong."""
    if not isinstance(stored, Mapping):
        raise ValueError(f"it is a value of type {type(stored).__name__}, not an object")
    given = {name: stored[name] for name in FIELDS if name in stored}
    if not given.get("finding_id") or "content" not in given:
        raise ValueError(f"it has no {'content' if given.get('finding_id') else 'finding_id'}")
    for name, value in given.items():
        if not isinstance(value, Mapping if name == "metadata" else str):
            raise ValueError(f"its {name} is of type {type(value).__name__}")
    return Finding(**given)
