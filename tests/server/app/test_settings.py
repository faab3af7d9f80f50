"""Settings come from code or from the environment, and the error for an invalid one has its name and the rule."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks_server import Settings
from reasonblocks_server.storage import Storage


def test_the_environment_sets_all_of_them() -> None:
    found = Settings.from_environ(
        {
            "REASONBLOCKS_DATA": "/srv/data",
            "REASONBLOCKS_DATABASE_URL": "postgresql://db/rb",
            "QDRANT_URL": "http://qdrant:6333",
            "QDRANT_API_KEY": "q",
            "REASONBLOCKS_KEYS": " first-key-of-tests , second-key-of-tests@acme ,",
            "RATE_LIMIT_PER_SEC": "7.5",
            "RATE_LIMIT_BURST": "9",
            "MAX_BODY_BYTES": "20000",
            "REASONBLOCKS_WORKERS": "3",
            "REASONBLOCKS_SQLITE_SYNCHRONOUS": "full",
            "REASONBLOCKS_RETENTION_DAYS": "90",
            "REASONBLOCKS_THREADS": "/srv/threads.db",
            "PATH": "/bin",
        }
    )
    assert found == Settings(
        data=Path("/srv/data"),
        database_url="postgresql://db/rb",
        qdrant_url="http://qdrant:6333",
        qdrant_api_key="q",
        static_keys=("first-key-of-tests", "second-key-of-tests@acme"),
        rate_per_second=7.5,
        burst=9,
        max_body_bytes=20_000,
        workers=3,
        sqlite_synchronous="FULL",
        retention_days=90,
        threads_url="/srv/threads.db",
    )


def test_given_settings_take_precedence_and_empty_variables_set_nothing() -> None:
    found = Settings.from_environ({"REASONBLOCKS_WORKERS": "3", "RATE_LIMIT_BURST": " "}, workers=2, burst=None)
    assert (found.workers, found.burst) == (2, Settings().burst)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("workers", 0), ("workers", True), ("burst", 0), ("rate_per_second", float("nan")), ("rate_per_second", -1),
        ("max_body_bytes", 5), ("retention_days", 0), ("sqlite_synchronous", "OFF"),
        ("static_keys", ("a key with spaces in it",)), ("static_keys", ("@acme",)),
        ("static_keys", ("key-of-the-tests@",)), ("static_keys", ("k7",)),
        ("static_keys", ("fifteen-letters@acme",)), ("static_keys", ("ключ",)), ("database_url", "mysql://db"),
        ("threads_url", "mysql://db"), ("threads_url", ""), ("qdrant_url", "qdrant:6333"),
    ],
)  # fmt: skip
def test_an_invalid_setting_is_named_with_its_rule(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{name}=.*: must ") as caught:
        Settings(**{name: value})
    assert caught.value.name == name


def test_a_variable_that_is_no_number_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^RATE_LIMIT_BURST='many': must be a number"):
        Settings.from_environ({"RATE_LIMIT_BURST": "many"})


@pytest.mark.parametrize("url", ["sqlite:///server.db", "postgres://db/rb", "postgresql+psycopg://db/rb"])
def test_every_usual_form_of_a_database_url_is_taken(url: str) -> None:
    settings = Settings(database_url=url)
    Storage.open(settings.database).close()


def test_settings_show_no_secret_and_can_be_sent_to_workers() -> None:
    settings = Settings(
        static_keys=("hidden-key-of-tests",), database_url="postgresql://u:hidden@db/rb", qdrant_api_key="hidden",
        threads_url="postgresql://u:hidden@db/threads",
    )  # fmt: skip
    assert "hidden" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings
