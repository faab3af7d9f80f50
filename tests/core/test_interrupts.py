"""Wherever an interrupt comes, no lock stays held: the same works afterwards, in any thread and in a forked process."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reasonblocks import ReasonBlocks
from reasonblocks.backends.http import HttpSink
from reasonblocks.backends.jsonl_sink import JsonlSink
from reasonblocks.backends.local_store import LocalStore
from reasonblocks.backends.profiles import ProfileFile, ProfileMemory
from reasonblocks.backends.sqlite_sink import SQLiteMonitorSink
from reasonblocks.events import RunFinish, RunStart, StepEvent
from reasonblocks.memory import CodebaseMemory
from reasonblocks.ports import TelemetrySink
from reasonblocks.requests import Retrieve
from reasonblocks.session import Telemetry
from reasonblocks.types import RunInfo
from reasonblocks_testing.rb_api import ScriptedRbApi
from tests.core.world import RecordingSink, begin, called, pattern
from tests.interrupts import Case, left_held

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""CPython reports an interrupt in a finaliser so, and a file or a socket that an interrupt closed by dropping it."""
START = RunStart(run=RunInfo(run_id="run", task="a task"), timestamp=1.0)
STEP = StepEvent(run_id="run", step_index=1, timestamp=2.0, scores={"semantic_loop": 0.1})
FINISH = RunFinish(run_id="run", outcome="success", timestamp=9.0)
AGENT = ("default", "agent", "coding")
SECONDS = 5.0


@pytest.fixture
def path(tmp_path: Path) -> Callable[[], Path]:
    """Return the path of a new file at each call."""
    return lambda: Path(tempfile.mkdtemp(dir=tmp_path)) / "file"


@pytest.fixture
def api() -> Iterator[ScriptedRbApi]:
    with ScriptedRbApi() as api:
        yield api


Path_ = Callable[[], Path]


def sink_case(sink: TelemetrySink) -> Case:
    def operation() -> None:
        sink.emit(START)
        sink.emit(STEP)
        sink.close()
        sink.emit(FINISH)

    return Case(operation=operation, works=lambda: sink.emit(FINISH), close=sink.close)


@pytest.mark.parametrize("kind", ["sqlite", "jsonl", "server"])
def test_a_sink_is_free(path: Path_, api: ScriptedRbApi, kind: str) -> None:
    sinks: dict[str, Callable[[], TelemetrySink]] = {
        "sqlite": lambda: SQLiteMonitorSink(path()),
        "jsonl": lambda: JsonlSink(path()),
        "server": lambda: HttpSink(api.url, api.key),
    }
    assert left_held(lambda: sink_case(sinks[kind]()))[1] == []


def test_the_queue_of_a_sink_is_free() -> None:
    def made() -> Case:
        telemetry = Telemetry([RecordingSink()])

        def operation() -> None:
            telemetry.emit(START)
            telemetry.flush(SECONDS)
            telemetry.close(SECONDS)
            telemetry.emit(STEP)
            telemetry.flush(SECONDS)

        def works() -> None:
            telemetry.emit(FINISH)
            assert telemetry.flush(SECONDS)

        return Case(operation=operation, works=works, close=lambda: telemetry.close(SECONDS))

    assert left_held(made)[1] == []


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_pattern_store_is_free(path: Path_, in_memory: bool) -> None:
    request = Retrieve(
        tier="e2", texts=("try what",), top_k=3, similarity=0.0, org_id="default", failure_type=None, model=""
    )

    def made() -> Case:
        store = LocalStore(None if in_memory else path())
        store.add([pattern("e3_0")])

        def operation() -> None:
            store.add([pattern("e2_1", exemplars=("try it",)), pattern("e3_1")])
            store.search(request)
            store.count(["e3_1"], "injected")
            store.remove("e3_0")
            store.close()
            store.search(request)

        def works() -> None:
            store.add([pattern("e2_2", exemplars=("try what",))])
            assert "e2_2" in [found.pattern.id for found in store.search(request)]
            assert len(store) == len(store.list("default"))

        return Case(operation=operation, works=works, close=store.close)

    assert left_held(made)[1] == []


def test_the_profiles_of_agents_are_free(path: Path_) -> None:
    def made() -> Case:
        file, memory = ProfileFile(path()), ProfileMemory()

        def operation() -> None:
            for profiles in (file, memory):
                profiles.add(AGENT, "run", {})
                profiles.read(AGENT, "another")
            file.drop(AGENT)

        def works() -> None:
            file.add(AGENT, "run", {})
            memory.add(AGENT, "run", {})

        return Case(operation=operation, works=works, close=lambda: None)

    assert left_held(made)[1] == []


def test_the_memory_of_a_codebase_is_free(path: Path_) -> None:
    def made() -> Case:
        memory = CodebaseMemory("acme/search", store=path())
        memory.store("Tests need a database.", "tests/conftest.py")

        def operation() -> None:
            memory.store("Ids are hashed.", "ids.py")
            memory.recall("ids")
            memory.close()
            memory.recall("ids")
            memory.invalidate(["ids.py"])

        def works() -> None:
            memory.store("Ids are short.", "ids.py")
            assert any(found.content == "Ids are short." for found in memory.recall("short ids"))

        return Case(operation=operation, works=works, close=memory.close)

    assert left_held(made)[1] == []


def run_case(rb: ReasonBlocks) -> Case:
    def whole() -> None:
        session = rb.session(agent_name="agent", task="a task")
        for number in range(2):
            session.end_step(begin(session, number), called(number))
        session.finish()

    def operation() -> None:
        whole()
        rb.close()

    return Case(operation=operation, works=whole, close=rb.close)


def test_a_client_and_its_runs_are_free(path: Path_) -> None:
    def made() -> Case:
        sinks: list[TelemetrySink] = [SQLiteMonitorSink(path()), JsonlSink(path())]
        return run_case(ReasonBlocks(sinks=sinks, scorer=lambda step: 0.5, profile=path(), strict=True))

    assert left_held(made)[1] == []


def test_a_client_of_a_server_is_free(api: ScriptedRbApi) -> None:
    def made() -> Case:
        return run_case(ReasonBlocks(base_url=api.url, api_key=api.key, redact=str, step_deadline_ms=3_000))

    assert left_held(made)[1] == []
