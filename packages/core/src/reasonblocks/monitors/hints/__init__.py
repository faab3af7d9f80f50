"""Hints: a way on, by what the run has shown; each row of the table is silent unless it is sure (section 5)."""

from __future__ import annotations

from collections.abc import Sequence

from ...util.text import cut_to_bytes
from . import edits, files, queries, replies, shells
from .moment import Moment, Row

HINT = 400
"""Bytes of a hint in JSON."""
ROWS: Sequence[tuple[str, Row]] = (
    ("placeholder", shells.placeholder),
    ("column or table", queries.unknown_name),
    ("reserved word", queries.reserved_word),
    ("old text not found", edits.not_found),
    ("edit refused by a lint", edits.refused_by_lint),
    ("prose in a command", shells.prose),
    ("file elsewhere", files.elsewhere),
    ("demand of the harness", replies.demand),
    ("made again", replies.made_again),
)
"""The table: what was seen, and the function that says it, "" if it is not sure. The first that says something wins."""


def hint_of(moment: Moment) -> tuple[str, str]:
    """Return the row that fits the newest step, and what it says; "" twice for none."""
    for name, row in ROWS:
        said = row(moment)
        if said and cut_to_bytes(said, HINT) == said:
            return name, said
    return "", ""
