"""The runs of one steering object: their ids, how many are kept, and what its user reads and says of them."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks import ReasonBlocks
from reasonblocks.adapters import HeldRun, Runs, SteeringHandle, view_of
from reasonblocks.events import RunFinish
from reasonblocks.exceptions import ConfigError, ProtocolError
from reasonblocks.session import SteeringSession
from tests.core.world import RecordingSink, client, run

ABANDONED = "failure: abandoned"


def held(run_id: str, *, calls: int = 1, over: bool = False, rb: ReasonBlocks | None = None) -> HeldRun:
    session = (rb or client()).session(run_id=run_id)
    run(session, calls)
    if over:
        session.finish()
    return HeldRun(session)


# ------------------------------------------------------------ ids


def test_later_runs_of_a_given_id_are_numbered_and_without_any_id_each_run_has_its_own() -> None:
    runs = Runs[HeldRun]("job")
    assert [runs.new_id(), runs.new_id(), runs.new_id("mine"), runs.new_id()] == ["job", "job.2", "mine", "job.3"]
    runs = Runs[HeldRun]()
    assert runs.new_id() != runs.new_id()


def test_an_id_that_was_asked_for_is_not_made_by_numbering() -> None:
    runs = Runs[HeldRun]()
    wanted = ("job", "job", "job.2", "job", "task.2", "task", "task")
    assert [runs.new_id(name) for name in wanted] == ["job", "job.2", "job.2.2", "job.3", "task.2", "task", "task.3"]


@given(st.lists(st.sampled_from(["a", "a.2", "a.3", "a.2.2", "b"]), max_size=30))
def test_no_two_runs_have_one_id_whatever_their_callers_ask_for(wanted: list[str]) -> None:
    runs = Runs[HeldRun]()
    assert len({runs.new_id(name) for name in wanted}) == len(wanted)


def test_an_id_of_a_run_that_is_held_is_not_given_again() -> None:
    runs = Runs[HeldRun]()
    runs.add(held("restored"))  # from another process: it was never asked for here
    assert runs.new_id("restored") == "restored.2"


def test_no_two_threads_get_one_id() -> None:
    runs = Runs[HeldRun]("job")
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(lambda _: runs.new_id(), range(400)))) == 400


# ------------------------------------------------------------ the runs that are held


def test_the_run_that_was_added_last_is_the_newest_and_each_is_found_by_its_id() -> None:
    runs = Runs[HeldRun]()
    first, last = runs.add(held("a")), runs.add(held("b"))
    assert (runs.newest, runs.find("a"), runs.find("nobody")) == (last, first, None)


def test_its_user_sees_a_mapping_of_views() -> None:
    runs = Runs[HeldRun]()
    runs.add(held("a", calls=2, over=True))
    shown = {name: (view.run_id, len(view.step_log), view.outcome) for name, view in runs.items()}
    assert shown == {"a": ("a", 2, "success")}


def test_a_run_whose_session_goes_on_with_another_one_keeps_its_id() -> None:
    kept = held("a")
    kept.session.trace.restore(held("b").session.trace.snapshot())
    assert (kept.run_id, kept.view.run_id) == ("a", "b")


def test_a_run_of_several_sessions_shows_its_own_log() -> None:
    first, last = held("a").session, held("a", over=True).session
    view = view_of(last, [*first.step_log, *last.step_log])
    assert (len(view.step_log), view.outcome, view.final, view.trace) == (2, "success", last.final, last.trace)


class Light:
    """A run in name alone, of which there can be thousands."""

    session: Any = None
    view: Any = None

    def __init__(self, run_id: str, *, over: bool) -> None:
        self.run_id, self.over = run_id, over


@pytest.mark.parametrize(("over", "most"), [(True, 256), (False, 4_096)], ids=["finished", "open"])
def test_the_newest_256_finished_and_4096_open_runs_are_kept(over: bool, most: int) -> None:
    runs = Runs[Light]()
    for at in range(most + 4):
        runs.add(Light(str(at), over=over))
    assert list(runs) == [str(at) for at in range(4, most + 4)]


def test_finished_runs_do_not_push_an_open_one_out() -> None:
    runs = Runs[Light]()
    still_open = runs.add(Light("open", over=False))
    for at in range(300):
        runs.add(Light(str(at), over=True))
    assert (runs.find("open"), len(runs)) == (still_open, 257)


def test_runs_that_have_finished_since_are_forgotten_when_they_are_looked_at() -> None:
    runs = Runs[Light]()
    added = [runs.add(Light(str(at), over=False)) for at in range(300)]
    for light in added:
        light.over = True
    assert [light.run_id for light in runs.all()] == [str(at) for at in range(44, 300)]


# ------------------------------------------------------------ the user's face


class Steering(SteeringHandle[HeldRun]):
    """What an adapter hands out, at its least."""

    def __init__(self, rb: ReasonBlocks | None = None) -> None:
        self._runs = Runs()
        self._rb = rb

    def start(self, run_id: str, *, over: bool = False) -> HeldRun:
        return self._runs.add(held(run_id, over=over, rb=self._rb))


def outcomes(steering: Steering) -> dict[str, str | None]:
    return {name: view.outcome for name, view in steering.runs.items()}


def test_before_the_first_run_there_is_nothing_to_read() -> None:
    steering = Steering()
    assert (steering.step_log, steering.final, dict(steering.runs)) == ([], None, {})


@pytest.mark.parametrize(
    "act", [lambda face: face.trace, lambda face: face.finish(), lambda face: face.mark_failure("no")]
)
def test_before_the_first_run_what_needs_one_is_refused(act: Any) -> None:
    with pytest.raises(ProtocolError, match="no run has started"):
        act(Steering())


def test_the_user_reads_the_run_that_was_started_last() -> None:
    steering = Steering()
    steering.start("a")
    session = steering.start("b", over=True).session
    assert (steering.step_log, steering.trace, steering.final) == (session.step_log, session.trace, session.final)


def test_finishing_ends_the_run_that_was_started_last() -> None:
    steering = Steering()
    steering.start("a")
    steering.start("b")
    steering.finish("failure: refused")
    assert outcomes(steering) == {"a": None, "b": "failure: refused"}


@pytest.mark.parametrize("which", [None, "b", "a"])
def test_a_failure_is_marked_of_the_run_that_was_started_last_or_of_the_one_that_is_named(which: str | None) -> None:
    steering = Steering()
    steering.start("a", over=True)
    steering.start("b", over=True)
    steering.mark_failure("wrong answer", run_id=which)
    assert outcomes(steering) == {"a": "success", "b": "success", which or "b": "failure: wrong answer"}


def test_a_failure_of_a_run_that_nobody_knows_is_refused() -> None:
    steering = Steering()
    steering.start("job-1", over=True)
    with pytest.raises(ConfigError, match="did you mean 'job-1'"):
        steering.mark_failure("wrong answer", run_id="job-2")
    assert outcomes(steering) == {"job-1": "success"}


def test_closing_abandons_what_is_open_and_nothing_else() -> None:
    steering = Steering()
    steering.start("over", over=True)
    steering.start("paused").session.pause()
    steering.start("open")
    steering.close()
    assert outcomes(steering) == {"over": "success", "paused": None, "open": ABANDONED}


def test_closing_gives_the_sinks_what_they_are_owed() -> None:
    sink = RecordingSink()
    steering = Steering(client(sinks=[sink]))
    steering.start("a")
    steering.start("b")
    steering.close()
    assert [event.outcome for event in sink.events if isinstance(event, RunFinish)] == [ABANDONED, ABANDONED]


class Placed:
    """A run that tells in which threads its session was asked for."""

    over = False

    def __init__(self, session: SteeringSession) -> None:
        self.run_id = session.run.run_id
        self.view = view_of(session)
        self.threads: set[int] = set()
        self._session = session

    @property
    def session(self) -> SteeringSession:
        self.threads.add(threading.get_ident())
        return self._session


class SteeringPlaced(SteeringHandle[Placed]):
    def __init__(self, run: Placed) -> None:
        self._runs = Runs()
        self._runs.add(run)


async def leave(steering: SteeringHandle[Any]) -> None:
    async with steering:
        pass


def test_leaving_with_ends_what_is_open_and_lets_an_exception_pass() -> None:
    steering, other = Steering(), Steering()
    steering.start("a")
    other.start("a")
    with pytest.raises(LookupError), steering:
        raise LookupError
    asyncio.run(leave(other))
    assert outcomes(steering) == outcomes(other) == {"a": ABANDONED}


def test_leaving_async_with_does_not_hold_up_the_event_loop() -> None:
    placed = Placed(held("a").session)
    asyncio.run(leave(SteeringPlaced(placed)))
    assert placed.threads - {threading.get_ident()} == placed.threads != set()


# ------------------------------------------------------------ what holds a run


def test_a_run_shows_its_id_its_outcome_and_its_calls() -> None:
    assert repr(held("r", calls=2, over=True)) == "HeldRun(run_id='r', outcome='success', calls=2)"


@pytest.mark.parametrize("copied", [copy, deepcopy])
def test_a_copy_of_what_holds_a_run_holds_the_same_run(copied: Callable[[list[HeldRun]], list[HeldRun]]) -> None:
    holder = [held("r")]
    assert copied(holder)[0] is holder[0]


def test_a_pickle_of_what_holds_a_run_has_none_in_its_place() -> None:
    assert pickle.loads(pickle.dumps(["kept", held("r")])) == ["kept", None]
