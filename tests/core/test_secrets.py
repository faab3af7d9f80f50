"""Keys, and URLs that hold one, are shown by no repr, no attribute, no log line, no error and no command."""

from __future__ import annotations

import dataclasses
import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from reasonblocks import QdrantStore, ReasonBlocks, StepInput
from reasonblocks.backends.embed import OpenAIEmbedder
from reasonblocks.exceptions import ConfigError, Unavailable
from reasonblocks.options import Options
from reasonblocks.options.config import configure
from reasonblocks_workbench.cli import main

KEYS = ("sk-very-secret-value", "rb_live_very_secret")
URL = "http://someone:rb_live_very_secret@127.0.0.1:9/path?key=sk-very-secret-value"
NO_KEYS: list[Any] = [
    b"sk-very-secret-value",
    ["rb_live_very_secret"],
    "sk-very-secret-value\n",
    "rb_live_very_secret数",
]


def shown(value: object, seen: set[int] | None = None) -> str:
    """All that printing a value, and what is in our values, one attribute after the other, would show."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return ""
    seen.add(id(value))
    texts = [repr(value), str(value)]
    inner: list[object] = []
    if isinstance(value, Mapping):
        inner = [*value, *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = list(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, one.name) for one in dataclasses.fields(value) if one.repr]
    elif type(value).__module__.startswith("reasonblocks") and hasattr(value, "__dict__"):
        inner = list(vars(value).values())
        texts.append(str(vars(value)))
    return "\n".join([*texts, *(shown(one, seen) for one in inner)])


def assert_hidden(text: str) -> None:
    assert [key for key in KEYS if key in text] == []


def qdrant(monkeypatch: pytest.MonkeyPatch) -> ReasonBlocks:
    monkeypatch.setenv("QDRANT_URL", URL)
    monkeypatch.setenv("QDRANT_API_KEY", KEYS[0])
    return ReasonBlocks(api_key=KEYS[1], strict=False)


MADE: dict[str, Callable[[], object]] = {
    "a client": lambda: ReasonBlocks(api_key=KEYS[0]),
    "the options": lambda: Options(api_key=KEYS[0], base_url=URL),
    "the configuration": lambda: configure(Options(api_key=KEYS[0]), {}),
    "the configuration of an environment": lambda: configure(Options(), {"REASONBLOCKS_API_KEY": KEYS[1]}),
    "an embedder": lambda: OpenAIEmbedder("m", "http://127.0.0.1:9", KEYS[0]),
}


@pytest.mark.parametrize("kind", MADE)
def test_what_holds_a_key_does_not_show_it(kind: str) -> None:
    assert_hidden(shown(MADE[kind]()))


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_a_qdrant_store_shows_neither_its_key_nor_what_is_secret_in_its_url() -> None:
    store = QdrantStore(URL, KEYS[0])
    assert_hidden(shown(store))


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_a_client_of_a_server_that_does_not_answer_logs_no_key(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "reasonblocks"), qdrant(monkeypatch) as rb:
        session = rb.session()
        session.begin_step(StepInput())
        assert session.step_log[0].skipped_reason == "unavailable"
        assert_hidden(shown(rb) + shown(session))
    assert_hidden("\n".join(logging.Formatter().format(one) for one in caplog.records if one.name == "reasonblocks"))


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_the_error_of_a_server_that_does_not_answer_shows_no_key() -> None:
    with pytest.raises(Unavailable, match=r"Qdrant at http://127\.0\.0\.1:9/path") as caught:
        QdrantStore(URL, KEYS[0]).list("default")
    assert_hidden("".join(traceback.format_exception(caught.value)))


def test_the_key_of_a_configuration_is_there_for_whoever_asks() -> None:
    key = configure(Options(api_key=KEYS[0]), {}).api_key
    assert key is not None
    assert key.reveal() == KEYS[0]


REFUSED: dict[str, Callable[[Any], object]] = {
    "a client": lambda key: ReasonBlocks(api_key=key),
    "an embedder": lambda key: OpenAIEmbedder("m", "http://127.0.0.1:9", key),
    "a store": lambda key: QdrantStore("http://127.0.0.1:9", key),
}


@pytest.mark.parametrize("key", NO_KEYS, ids=range(len(NO_KEYS)))
@pytest.mark.parametrize("kind", REFUSED)
def test_a_key_that_cannot_be_sent_is_refused_unseen(kind: str, key: Any) -> None:
    with pytest.raises(ConfigError, match=r"^api_key=") as caught:
        REFUSED[kind](key)
    assert_hidden("".join(traceback.format_exception(caught.value)) + shown(vars(caught.value)))


def test_a_key_of_the_environment_that_cannot_be_used_is_refused_unseen() -> None:
    with pytest.raises(ConfigError, match=r"^REASONBLOCKS_API_KEY=") as caught:
        configure(Options(), {"REASONBLOCKS_API_KEY": f"{KEYS[0]}\n"})
    assert KEYS[0] not in str(caught.value)


WRONG: list[dict[str, Any]] = [
    {"base_url": URL}, {"task_profile": "none"}, {"sinks": 5}, {"step_deadline_ms": 0}, {"monitors": ["none"]},
    {"fsm_thresholds": {"fast_threshold": 2}}, {"calibration": "missing.toml"}, {"pattern_store": 5},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: next(iter(wrong)))
def test_the_error_of_a_wrong_option_beside_a_key_does_not_show_it(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"api_key": KEYS[0], **wrong}
    with pytest.raises(ConfigError) as caught:
        ReasonBlocks(**given)
    assert_hidden(shown(caught.value) + shown(vars(caught.value)))


@pytest.mark.parametrize("url", [URL, "http://[sk-very-secret-value", "rb_live_very_secret"])
@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
def test_a_url_that_cannot_be_used_is_refused_unseen(url: str) -> None:
    with pytest.raises(ConfigError) as both:
        QdrantStore(url, client=object())  # type: ignore[arg-type]  # never asked
    assert_hidden(shown(both.value) + shown(vars(both.value)))
    with pytest.raises(ConfigError) as caught:
        QdrantStore("http://[sk-very-secret-value", KEYS[0])
    assert_hidden(shown(caught.value) + shown(vars(caught.value)))


@pytest.mark.parametrize("form", [["doctor"], ["doctor", "--json"]])
@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
@pytest.mark.parametrize("base_url", ["", URL])
def test_the_doctor_shows_no_key(
    form: list[str], base_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REASONBLOCKS_API_KEY", KEYS[1])
    monkeypatch.setenv("REASONBLOCKS_BASE_URL", base_url)
    monkeypatch.setenv("QDRANT_URL", URL)
    monkeypatch.setenv("QDRANT_API_KEY", KEYS[0])
    main(form)
    assert_hidden("".join(capsys.readouterr()))
