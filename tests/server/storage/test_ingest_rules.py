"""Batches of events leave what the rules say, in any order, split anywhere and sent repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks_server.storage import Storage
from reasonblocks_server.summary import summary_of
from reasonblocks_server.values import RunFilter
from tests.server.storage.model import Event, Model, finish, row_of, start, step, stored
from tests.whole import QUICK_EXAMPLES, WHOLE

ORGS = (f"org-{number}" for number in count())
examples = settings(
    max_examples=200 if WHOLE else QUICK_EXAMPLES // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

times = st.integers(0, 20).map(float)
states = st.sampled_from(["INIT", "FAST", "NORMAL", "SLOW", "SKIP"])
outcomes = st.sampled_from(["success", "failure: A", "failure: B", "stopped: x"])
sources = st.lists(st.sampled_from(["MonitorSteeringInjection", "E1Injection", "E3Injection"]), max_size=2)


@st.composite
def steps(draw: st.DrawFn, run: str, index: int, *, final: bool) -> Event:
    more: dict[str, Any] = {"injection_sources": draw(sources)}
    if draw(st.booleans()):
        more |= {"tokens": draw(st.integers(0, 9)), "failure_type": draw(st.sampled_from(["loop", "drift"]))}
    found = step(run, index, draw(times), final=final, state=draw(states), **more)
    if draw(st.booleans()):
        found["metadata"]["cost_usd"] = draw(st.sampled_from([0.0, 0.25, 1.5]))
    return found


@st.composite
def any_events(draw: st.DrawFn) -> list[Event]:
    """Events of two runs in any order, which may start again, fork and end repeatedly."""
    found = []
    for _ in range(draw(st.integers(1, 14))):
        run = draw(st.sampled_from(["r/1", "r 2"]))
        kind = draw(st.sampled_from(["start", "step", "step", "step", "finish"]))
        if kind == "start":
            found.append(start(run, draw(times), task=draw(st.sampled_from(["", "a", "b"]))))
        elif kind == "step":
            found.append(draw(steps(run, draw(st.integers(0, 3)), final=draw(st.booleans()))))
        else:
            found.append(finish(run, draw(outcomes), draw(times)))
    return found


@st.composite
def one_run(draw: st.DrawFn) -> list[Event]:
    """The events of one run that starts at most once and never forks."""
    found = [start("r", draw(times), task="a")] if draw(st.booleans()) else []
    for index in range(draw(st.integers(0, 4))):
        kinds = draw(st.sampled_from([[False], [True], [False, True]]))
        found += [draw(steps("r", index, final=final)) for final in kinds]
    return found + [finish("r", draw(outcomes), draw(times)) for _ in range(draw(st.integers(0, 3)))]


def split(draw: st.DrawFn, events: Sequence[Event]) -> list[list[Event]]:
    cuts = sorted(draw(st.sets(st.integers(1, len(events)), max_size=3)) | {0, len(events)})
    return [list(events[a:b]) for a, b in pairwise(cuts)]


@st.composite
def batches(draw: st.DrawFn) -> list[list[Event]]:
    events = draw(any_events())
    found = split(draw, events)
    again = draw(st.lists(st.integers(0, len(found) - 1), max_size=2))
    return [*found, *(found[place] for place in again)]


@examples
@given(batches=batches())
def test_the_stored_runs_are_those_of_the_rules(storage: Storage, batches: list[list[Event]]) -> None:
    org, models = next(ORGS), dict[str, Model]()
    for number, batch in enumerate(batches):
        ended = {run for run, model in models.items() if model.finish is not None}
        kept = [models.setdefault(event["run_id"], Model()).add(event) for event in batch]
        answer = storage.runs.ingest(org, batch, now=float(number))
        assert (answer.accepted, answer.repeated, answer.refused) == (sum(kept), len(kept) - sum(kept), ())
        new = {run for run, model in models.items() if model.finish is not None} - ended
        assert new <= {*answer.finished} <= {run for run, model in models.items() if model.finish is not None}
    for run, model in models.items():
        assert stored(storage, org, run) == model.seen()


@examples
@given(events=one_run().filter(bool), data=st.data())
def test_order_batches_and_repeats_make_no_difference(
    storage: Storage, events: list[Event], data: st.DataObject
) -> None:
    one, other = next(ORGS), next(ORGS)
    storage.runs.ingest(one, events, now=1.0)
    again = data.draw(st.lists(st.sampled_from(events), max_size=4))
    for batch in data.draw(st.builds(lambda mixed: [mixed[:3], mixed[3:]], st.permutations([*events, *again]))):
        storage.runs.ingest(other, batch, now=1.0)
    assert stored(storage, one, "r") == stored(storage, other, "r")
    left, right = storage.runs.get(one, "r"), storage.runs.get(other, "r")
    assert left is not None
    assert right is not None
    assert left.summary == right.summary


@examples
@given(batches=batches())
def test_a_finished_run_has_the_summary_of_its_steps(storage: Storage, batches: list[list[Event]]) -> None:
    org = next(ORGS)
    for batch in batches:
        storage.runs.ingest(org, batch, now=1.0)
    for run, rows in storage.runs.narrow(org, ["r/1", "r 2"]).items():
        row = row_of(storage, run, org)
        assert row.summary == (None if row.finished is None else summary_of(rows, row.outcome))


def test_a_run_that_starts_again_ends_again(storage: Storage) -> None:
    first = [start("r", 1.0), step("r", 0), finish("r")]
    assert storage.runs.ingest("o", first, now=1.0).finished == ("r",)
    assert storage.runs.ingest("o", first, now=2.0).finished == ()
    assert storage.runs.ingest("o", [start("r", 5.0), finish("r", at=7.0)], now=3.0).finished == ("r",)
    assert stored(storage, "o", "r") == {**Model(start=start("r", 5.0), finish=finish("r", at=7.0)).seen()}


def test_a_repeat_is_no_news(storage: Storage) -> None:
    batch = [start("r", 1.0), step("r", 0), finish("r")]
    storage.runs.ingest("o", batch, now=1.0)
    before = storage.runs.get("o", "r")
    assert storage.runs.ingest("o", batch, now=50.0).repeated == 3
    assert storage.runs.get("o", "r") == before


def test_a_run_has_the_metadata_of_its_start(storage: Storage) -> None:
    more = {"experiment_id": "e1", "arm": "on", "assignment_unit": "u", "unit_id": "another"}
    body = start("r", 1.0, agent_name="a", model="m", framework="f", parent_run_id="p", mode="observe", metadata=more)
    storage.runs.ingest("o", [body], now=5.0)
    row = row_of(storage)
    assert (row.agent_name, row.model, row.framework, row.parent_run_id) == ("a", "m", "f", "p")
    assert (row.mode, row.experiment_id, row.arm, row.unit_id, row.seen) == ("observe", "e1", "on", "u", 5.0)
    assert row.body["metadata"] == more


def test_an_observed_step_makes_an_observed_run(storage: Storage) -> None:
    storage.runs.ingest("o", [step("r", 0, metadata={"mode": "observe"})], now=1.0)
    storage.runs.ingest("o", [start("r", 1.0)], now=1.0)
    row = row_of(storage)
    assert row.mode == "observe"


def test_bodies_name_neither_org_nor_project(storage: Storage) -> None:
    body = start("r", 1.0, org_id="other", project_id="theirs")
    storage.runs.ingest("o", [body], now=1.0, project_id="mine")
    row = row_of(storage)
    assert (row.org_id, row.project_id, row.body["org_id"], row.body["project_id"]) == ("o", "mine", "o", "mine")
    assert storage.runs.get("other", "r") is None


def test_a_key_of_another_project_changes_nothing(storage: Storage) -> None:
    storage.runs.ingest("o", [step("r", 0)], now=1.0, project_id="mine")
    answer = storage.runs.ingest("o", [step("r", 1), step("s", 0)], now=2.0, project_id="theirs")
    assert (answer.accepted, answer.refused) == (1, ((0, "run_id: the run belongs to another project"),))
    assert len(storage.runs.steps("o", "r")) == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_client_may_take_notes_before_its_first_event(storage: Storage, order: tuple[int, int]) -> None:
    acts: list[Callable[[], object]] = [
        lambda: storage.runs.takes_notes("o", "r", 3.0),
        lambda: storage.runs.ingest("o", [step("r", 0, at=7.0)], now=4.0),
    ]
    for place in order:
        acts[place]()
    row = row_of(storage)
    assert (row.takes_notes, row.started, row.steps) == (True, 7.0, 1)


def test_a_run_of_a_clock_far_ahead_does_not_stay_the_first_of_the_list(storage: Storage) -> None:
    ahead = 90_000_000_000.0
    storage.runs.ingest("o", [start("odd", ahead), step("odd", 0, at=ahead + 1.0)], now=1_000.0)
    storage.runs.ingest("o", [start("usual", 2_000.0)], now=2_000.0)
    assert [row.run_id for row in storage.runs.list("o", RunFilter(), limit=9)[0]] == ["usual", "odd"]
    assert storage.runs.ingest("o", [start("odd", ahead)], now=3_000.0).repeated == 1
    assert len(storage.runs.steps("o", "odd")) == 1
    storage.runs.ingest("o", [start("odd", ahead + 5.0)], now=4_000.0)
    assert [row.run_id for row in storage.runs.list("o", RunFilter(), limit=9)[0]] == ["odd", "usual"]
