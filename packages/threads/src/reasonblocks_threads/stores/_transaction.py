"""Statements of one transaction, on any driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from reasonblocks.util.text import storable_text

from ._rows import Row


class Duplicate(Exception):
    """A row whose unique key exists already."""


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchall(self) -> list[Any]: ...


Execute = Callable[[str, Sequence[Any]], Cursor]


class Transaction:
    """Executes statements, whose parameters are marked by "?", and turns the driver's errors into ours.

    `mapped` makes a `Duplicate` or a `StoreUnavailable` of an error of the driver, and None of one about a text that
    the database cannot store. `skip_locked` is what a SELECT ends with to lock its rows and to pass over those that
    others have locked; `positions` is a statement after which no other transaction appends to the log.
    """

    def __init__(
        self,
        execute: Execute,
        mapped: Callable[[Exception], Exception | None],
        *,
        skip_locked: str = "",
        positions: str = "",
    ) -> None:
        self._execute, self._mapped = execute, mapped
        self.skip_locked, self._positions = skip_locked, positions
        self.is_over = False
        self.erases = False
        """True if private texts are to be erased from the disk at the end."""
        self.error: Exception | None = None
        """The error of a statement that failed."""

    def all(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        cursor = self._run(sql, values)
        try:
            return cursor.fetchall()
        except Exception as error:  # a damaged file
            self.error = self._mapped(error) or error
            raise self.error from error

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Return the number of changed rows."""
        return self._run(sql, values).rowcount

    def many(self, sql: str, rows: Sequence[Row]) -> None:
        for row in rows:
            self._run(sql, row)

    def hold_positions(self) -> None:
        """Let no other transaction append to the log until this one ends."""
        if self._positions:
            self._run(self._positions, ())

    def check(self) -> None:
        """Raise the error of a statement that failed, because the rest of the transaction means nothing without it."""
        if self.error is not None:
            raise self.error

    def _run(self, sql: str, values: Sequence[Any]) -> Cursor:
        if self.is_over:
            raise RuntimeError("the transaction is over")
        try:
            return self._execute(sql, values)
        except Exception as error:
            mapped = self._mapped(error)
            if mapped is None:
                return self._run(sql, [storable_text(value) if isinstance(value, str) else value for value in values])
            self.error = mapped
            raise mapped from error
