"""Reduces an error of the user's code, such as a monitor's, to the traceback of that code."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import TracebackType

from reasonblocks.exceptions import ReasonBlocksError


class UserFault(ReasonBlocksError):
    """An error of the user's code that ended the work on `what`, with the `traceback` of that code."""

    def __init__(self, what: str, error: Exception) -> None:
        first = _first(error)
        self.what, self.traceback = what, _own_traceback(first)
        reason = f"{type(first).__name__}: {first}" if str(first) else type(first).__name__
        super().__init__(f"{what} is not replayed further: {reason}")


def _first(error: BaseException) -> BaseException:
    """Return the error with which it began: ending a run asks the user's code again, which may fail again."""
    while error.__context__ is not None and any(map(_is_ours, _entries(error.__context__.__traceback__))):
        error = error.__context__
    return error


def _own_traceback(error: BaseException) -> str:
    """Return the traceback from the newest of our frames on, without them; the whole one if nothing follows them."""
    entries = list(_entries(error.__traceback__))
    ours = [at for at, entry in enumerate(entries) if _is_ours(entry)]
    start = ours[-1] + 1 if ours and ours[-1] + 1 < len(entries) else 0
    return "".join(traceback.format_exception(type(error), error, entries[start] if entries else None))


def _entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _is_ours(entry: TracebackType) -> bool:
    module = str(entry.tb_frame.f_globals.get("__name__"))
    return module.partition(".")[0] in ("reasonblocks", "reasonblocks_workbench")
