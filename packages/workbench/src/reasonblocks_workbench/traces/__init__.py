"""Reads recorded runs from files in any known format, which is detected, with one run in memory at a time."""

from __future__ import annotations

from ._files import UNPACKED_BYTES, UNPACKED_VARIABLE, Record, files_in, read_records
from ._logs import RunLog
from ._read import READERS, installed_readers, read_logs, read_runs
from ._run import FileReader, Reader, RecordedRun

__all__ = [
    "READERS", "UNPACKED_BYTES", "UNPACKED_VARIABLE", "FileReader", "Reader", "Record", "RecordedRun", "RunLog",
    "files_in", "installed_readers", "read_logs", "read_records", "read_runs",
]  # fmt: skip
