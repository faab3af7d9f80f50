"""One run of an adapter's file beside the core's entries."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reasonblocks_testing._parity import LIVE_ONLY, entry_differences, run_differences
from tests.parity.exchange import Line, ParityFile

__all__ = ["LIVE_ONLY", "differences", "entry_differences"]


def differences(
    file: ParityFile, run: str, mode: str, core: Sequence[Line], *, leave: Collection[str] = ()
) -> list[str]:
    """A line for each field that is not the core's, and for a run that is missing or of another length."""
    where = f"{file.framework}, {mode}, {run}"
    theirs = file.entries.get((run, mode), [])
    return run_differences(where, theirs, core, leave=leave) if theirs else [f"{where}: is missing from the file"]
