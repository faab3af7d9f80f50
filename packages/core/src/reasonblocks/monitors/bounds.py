"""Checks an account and a patience that come from outside: from a snapshot or a client."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator

from ..account.observe import (
    ACTIONS_KEPT,
    CHANGES_KEPT,
    IDS_KEPT,
    ITEMS_KEPT,
    LETTERS_KEPT,
    MAX_IDS,
    MAX_SHAPES,
    TOOLS_KEPT,
)
from ..types import Account, Patience
from .patience import RUNGS

LARGEST = 2**53
"""The largest number: that of JSON libraries which have no other numbers than floats."""
NAME_LENGTH = 100
_LETTERS = frozenset(".ABCDabcd")
_RUNGS = frozenset(["", *(rung.name for rung in RUNGS)])


def checked_account(account: Account) -> Account:
    """Return the account. Raises `ValueError` for one that no run has."""
    sizes = (
        ("letters", account.letters, LETTERS_KEPT),
        ("actions", account.actions, ACTIONS_KEPT),
        ("changes", account.changes, CHANGES_KEPT),
        ("vain", account.vain, TOOLS_KEPT),
        ("ids", account.ids, IDS_KEPT),
        ("series.shapes", account.series.shapes, MAX_SHAPES),
        ("ids", max(account.ids, key=len, default=()), 1 + MAX_IDS),
    )
    for name, value, most in sizes:
        if len(value) > most:
            raise ValueError(f"account.{name} has {len(value)} items; at most {most} are kept")
    if not _LETTERS.issuperset(account.letters) or account.did.letter not in ("", "A", "B", "C", "D"):
        raise ValueError(f"account.letters {account.letters!r} must be of {''.join(sorted(_LETTERS))}")
    if account.did.due not in ("", "check", "series"):
        raise ValueError(f"account.did.due {account.did.due!r} must be '', 'check' or 'series'")
    _check_numbers("account", _numbers_of(account))
    _check_items(account.items)
    return account


def checked_patience(patience: Patience) -> Patience:
    """Return the patience. Raises `ValueError` for one that no run has."""
    if patience.rung not in _RUNGS:
        raise ValueError(f"patience.rung {patience.rung[:NAME_LENGTH]!r} must be one of {sorted(_RUNGS)}")
    if len(patience.name) > NAME_LENGTH:
        raise ValueError(f"patience.name has {len(patience.name)} characters; at most {NAME_LENGTH}")
    if patience.offset not in (-1, 0, 1):
        raise ValueError(f"patience.offset {patience.offset} must be -1, 0 or 1")
    if len(patience.counts) not in (0, len(RUNGS)):
        raise ValueError(
            f"patience.counts has {len(patience.counts)} items, not one for each of the {len(RUNGS)} rungs"
        )
    since = patience.since + 1
    _check_numbers(
        "patience", [patience.window, patience.alone, since, *[n for count in patience.counts for n in count]]
    )
    return patience


def _numbers_of(account: Account) -> Iterator[int]:
    yield from (account.steps, account.mark, account.user, account.edits, account.turn, *account.changes)
    for row in (*account.actions, *account.vain, *account.ids):
        yield from row
    yield from (account.series.line, account.series.tried, *account.series.shapes)
    if account.check is not None:
        yield from (account.check.step, account.check.call, account.check.line, account.check.row, account.check.since)


def _check_numbers(name: str, numbers: Iterable[int]) -> None:
    for number in numbers:
        if not 0 <= number <= LARGEST:
            raise ValueError(f"{name} has the number {str(number)[:NAME_LENGTH]}; all are from 0 to 2**53")


def _check_items(items: str) -> None:
    try:
        size = len(b64decode(items[: 8 * ITEMS_KEPT], validate=True))
    except ValueError as exc:
        raise ValueError(f"account.items is no base64 ({exc})") from exc
    if size % 2 or size > 2 * ITEMS_KEPT or len(items) > 8 * ITEMS_KEPT:
        raise ValueError(f"account.items must be at most {ITEMS_KEPT} numbers of two bytes")
