"""Defines the errors that the routes answer with a status."""

from __future__ import annotations

from collections.abc import Mapping


class ApiError(Exception):
    """An error of the API, answered as `{"detail": detail}` with this HTTP status and these headers."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.detail, self.headers = status, detail, dict(headers or {})
        super().__init__(f"{status}: {detail}")


class StorageUnavailable(Exception):
    """The database is locked, full or unreachable; answered with 503 and `Retry-After`."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the database is not available: {reason}")

    @property
    def told(self) -> str:
        """The text without the addresses and names that drivers write: anybody may ask a server if it is ready."""
        return f"the database is not available: {self.reason.partition(':')[0]}"
