"""Texts, numbers and JSON that a database cannot store are converted, and never lost silently."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks_server.storage import Storage
from reasonblocks_server.values import RunFilter
from tests.server.storage.model import finish, row_of, start, step
from tests.whole import QUICK_EXAMPLES

HOSTILE = "a\0b\ud800c\u202e'\"; DROP TABLE runs; --%_\\ \U0001f600"
STORED = "a\ufffdb?c\u202e'\"; DROP TABLE runs; --%_\\ \U0001f600"
anything = st.text(st.characters(exclude_categories=()), max_size=20)


def test_hostile_texts_are_found_again(storage: Storage) -> None:
    events = [
        start(HOSTILE, 1.0, task=HOSTILE, agent_name=HOSTILE, metadata={HOSTILE: HOSTILE, "experiment_id": HOSTILE}),
        step(HOSTILE, 0, thought=HOSTILE, scores={HOSTILE: 0.5}, monitors_fired=[HOSTILE], state=HOSTILE),
        finish(HOSTILE, HOSTILE),
    ]
    assert storage.runs.ingest("o", events, now=1.0).accepted == 3
    row = row_of(storage, HOSTILE)
    assert (row.run_id, row.task, row.agent_name, row.outcome, row.experiment_id) == (STORED,) * 5
    assert row.body["metadata"]["experiment_id"] == "a\0b?c\u202e'\"; DROP TABLE runs; --%_\\ \U0001f600"
    assert storage.runs.steps("o", HOSTILE)[0]["thought"].startswith("a\0b?c")
    assert storage.runs.narrow("o", [HOSTILE])[HOSTILE][0].fired == (STORED,)
    found, _ = storage.runs.list("o", RunFilter(q=HOSTILE, agent=HOSTILE, experiment_id=HOSTILE), limit=9)
    assert [one.run_id for one in found] == [STORED]
    assert storage.runs.delete("o", HOSTILE)


@settings(max_examples=QUICK_EXAMPLES // 2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(run=anything, text=anything, number=st.one_of(st.integers(), st.floats(), st.sampled_from([10**400, -(2**64)])))
def test_any_text_and_number_is_stored(storage: Storage, run: str, text: str, number: float) -> None:
    run = f"r{run}"
    storage.runs.delete("o", run)
    metadata = {"difficulty": number, "error": text, "pattern_ids": [text], "stop": number, "more": number}
    events = [start(run, 1.0, task=text), step(run, 0, metadata=metadata), finish(run, text)]
    assert storage.runs.ingest("o", events, now=1.0).accepted == 3
    row = row_of(storage, run)
    everything = [row.body, *storage.runs.steps("o", run), storage.runs.finish_body("o", run), row.summary]
    json.dumps(everything, allow_nan=False, ensure_ascii=False).encode()


def test_long_ids_stay_apart(storage: Storage) -> None:
    names = ["x" * 100_000 + end for end in "ab"]
    assert storage.runs.ingest("o", [start(name, 1.0, agent_name=name) for name in names], now=1.0).accepted == 2
    rows = [storage.runs.get("o", name) for name in names]
    assert len({row.run_id for row in rows if row is not None}) == 2
    assert len(storage.runs.choices("o")["agents"]) == 2


def test_a_long_task_is_whole_in_its_run_alone(storage: Storage) -> None:
    storage.runs.ingest("o", [start("r", 1.0, task="t" * 50_000)], now=1.0)
    row = row_of(storage)
    assert row.task == "t" * 50_000
    assert [len(one.task) for one in storage.runs.list("o", RunFilter(), limit=1)[0]] == [2_000]


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize("levels", [70, 5_000])
def test_deep_json_is_refused_alone(storage: Storage, levels: int) -> None:
    deep = nested(levels)
    batch = [step("r", 0), step("r", 1, metadata={"x": deep}), start("r", 1.0, metadata={"x": deep}), step("r", 2)]
    answer = storage.runs.ingest("o", batch, now=1.0)
    assert (answer.accepted, [place for place, _ in answer.refused]) == (2, [1, 2])
    assert "levels deep" in answer.refused[0][1]


def test_a_wrong_event_is_refused_with_its_reason(storage: Storage) -> None:
    wrong = [{}, {"event": "step", "run_id": "r"}, step("r", -1), step("r", 2**63), step("r", 0, at=float("nan"))]
    wrong += [step("", 0), start("", 1.0), finish("")]
    answer = storage.runs.ingest("o", [*wrong, step("r", 0)], now=1.0)
    assert (answer.accepted, [place for place, _ in answer.refused]) == (1, [*range(8)])
    assert all(reason for _, reason in answer.refused)
    assert [row.run_id for row in storage.runs.list("o", RunFilter(), limit=9)[0]] == ["r"]


def test_the_largest_numbers_are_stored(storage: Storage) -> None:
    most = 2**63 - 1
    events = [step("r", most, at=1.7e308, tokens=most), step("r", 0, at=-1.7e308, tokens=most)]
    assert storage.runs.ingest("o", events, now=1.0).accepted == 2
    row = row_of(storage)
    assert (row.tokens, row.started) == (most, -1.7e308)
    assert [body["step_index"] for body in storage.runs.steps("o", "r")] == [0, most]
