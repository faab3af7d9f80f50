"""Defines the settings of a server, from code or from environment variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from reasonblocks.exceptions import ConfigError

DATABASE_FILE = "server.db"
MAX_WORKERS = 64
MIN_KEY_CHARS = 16
"""The fewest characters of a static key: a shorter one can be guessed."""
POSTGRES_URLS = ("postgresql://", "postgres://")
MAX_BODY_BYTES = 5_000_000
"""The largest body as it is sent."""
MAX_UNPACKED_BYTES = 8_000_000
"""The largest body after gzip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a server. Raises `ConfigError` for an invalid one.

    - `data`: the data folder, which by default has the database and the patterns.
    - `database_url`: `sqlite:///PATH` or `postgresql://...`; by default a file in `data`.
    - `qdrant_url`: the Qdrant server for the patterns; by default, a file in `data` has them.
    - `static_keys`: keys as `KEY` or `KEY@ORG`, with the scopes ingest, evaluate and read; without an org, a key
      belongs to the org "default".
    - `rate_per_second`, `burst`: the requests that each key may make, on average and at once, over all workers.
    - `max_body_bytes`: the largest body as it is sent.
    - `workers`: the number of processes, which share the rates equally.
    - `sqlite_synchronous`: SQLite's `synchronous`. With "NORMAL", a power cut may take the last commits; with "FULL",
      none.
    - `retention_days`: the days for which an org's runs are kept, if the org has set nothing else.
    - `threads_url`: the database of threads, a path or `postgresql://...`; without one, the dashboard has no threads.
    """

    data: Path = Path("reasonblocks-data")
    database_url: str | None = field(default=None, repr=False)
    qdrant_url: str | None = field(default=None, repr=False)
    qdrant_api_key: str | None = field(default=None, repr=False)
    static_keys: tuple[str, ...] = field(default=(), repr=False)
    rate_per_second: float = 200.0
    burst: int = 400
    max_body_bytes: int = MAX_BODY_BYTES
    workers: int = 1
    sqlite_synchronous: Literal["NORMAL", "FULL"] = "NORMAL"
    retention_days: int = 30
    threads_url: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", Path(self.data))
        _check_number("rate_per_second", self.rate_per_second, 0.1, 1e6)
        _check_number("burst", self.burst, 1, 1e6)
        _check_number("max_body_bytes", self.max_body_bytes, 1_000, 100_000_000)
        _check_number("workers", self.workers, 1, MAX_WORKERS)
        _check_number("retention_days", self.retention_days, 1, 36_500)
        if self.sqlite_synchronous not in ("NORMAL", "FULL"):
            raise ConfigError("sqlite_synchronous", self.sqlite_synchronous, "must be NORMAL or FULL")
        for given in self.static_keys:
            key, _, org = given.partition("@")
            if not key or not key.isascii() or not key.isprintable() or " " in key or ("@" in given and not org):
                raise ConfigError("static_keys", f"{key[:4]}...", "must be KEY or KEY@ORG, in ASCII without spaces")
            if len(key) < MIN_KEY_CHARS:
                rule = f"must have at least {MIN_KEY_CHARS} characters, as openssl rand -hex 16 makes them"
                raise ConfigError("static_keys", f"a key of {len(key)} characters", rule)
        if self.database_url is not None and not self.database_url.startswith(("sqlite:", "postgres")):
            kind = self.database_url.partition(":")[0]
            raise ConfigError("database_url", f"{kind}:...", "must be sqlite:///PATH or postgresql://...")
        if self.qdrant_url is not None and not self.qdrant_url.startswith(("http://", "https://")):
            raise ConfigError("qdrant_url", self.qdrant_url.partition(":")[0], "must be an http or https URL")
        if self.threads_url is not None and not _is_threads_url(self.threads_url):
            kind = self.threads_url.partition(":")[0]
            raise ConfigError("threads_url", f"{kind}:...", "must be a path or postgresql://...")

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], **given: Any) -> Settings:
        """Return the settings from environment variables. Settings in `given` that are not None take precedence.

        The variables are `REASONBLOCKS_DATA`, `REASONBLOCKS_DATABASE_URL`, `QDRANT_URL`, `QDRANT_API_KEY`,
        `REASONBLOCKS_KEYS` (comma-separated), `RATE_LIMIT_PER_SEC`, `RATE_LIMIT_BURST`, `MAX_BODY_BYTES`,
        `REASONBLOCKS_WORKERS`, `REASONBLOCKS_SQLITE_SYNCHRONOUS`, `REASONBLOCKS_RETENTION_DAYS` and
        `REASONBLOCKS_THREADS`.
        """
        found: dict[str, Any] = {}
        for name, (variable, read) in _VARIABLES.items():
            if text := environ.get(variable, "").strip():
                try:
                    found[name] = read(text)
                except ValueError as exc:
                    raise ConfigError(variable, text, "must be a number") from exc
        return cls(**{**found, **{name: value for name, value in given.items() if value is not None}})

    @property
    def database(self) -> str:
        """The URL of the database."""
        return self.database_url or f"sqlite:///{(self.data / DATABASE_FILE).absolute()}"

    @property
    def patterns_file(self) -> Path:
        """The file of the patterns, if there is no Qdrant server."""
        return self.data / "patterns.db"


def _check_number(name: str, value: object, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise ConfigError(name, value, f"must be a number from {least:g} to {most:g}")


def _is_threads_url(text: str) -> bool:
    return text != "" and ("://" not in text or text.startswith(POSTGRES_URLS))


def _keys(text: str) -> tuple[str, ...]:
    return tuple([part.strip() for part in text.split(",") if part.strip()])


_VARIABLES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "data": ("REASONBLOCKS_DATA", Path),
    "database_url": ("REASONBLOCKS_DATABASE_URL", str),
    "qdrant_url": ("QDRANT_URL", str),
    "qdrant_api_key": ("QDRANT_API_KEY", str),
    "static_keys": ("REASONBLOCKS_KEYS", _keys),
    "rate_per_second": ("RATE_LIMIT_PER_SEC", float),
    "burst": ("RATE_LIMIT_BURST", int),
    "max_body_bytes": ("MAX_BODY_BYTES", int),
    "workers": ("REASONBLOCKS_WORKERS", int),
    "sqlite_synchronous": ("REASONBLOCKS_SQLITE_SYNCHRONOUS", str.upper),
    "retention_days": ("REASONBLOCKS_RETENTION_DAYS", int),
    "threads_url": ("REASONBLOCKS_THREADS", str),
}
assert {*_VARIABLES} == {field.name for field in fields(Settings)}
