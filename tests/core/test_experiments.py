"""The hash of a run's unit decides everywhere alike whether the run is steered or observed."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks import JsonlSink, ReasonBlocks
from reasonblocks.exceptions import ConfigError
from reasonblocks.options.run import Assignment, Assignments
from reasonblocks.types import RunOptions
from reasonblocks_workbench.report import page_of_log, run_page
from reasonblocks_workbench.traces import RunLog, read_logs
from tests.core.world import RecordingSink, begin, client, printed, run, speaks

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
EXPERIMENT: dict[str, Any] = {"experiment_id": "lessons", "on_fraction": 0.5}
ON_UNIT, OFF_UNIT = "d", "a"
"""Units of that experiment."""


def is_on(experiment_id: str, unit_id: str, on_fraction: float) -> bool:
    """The rule once more, in exact fractions: the first sixteen hexadecimal digits of the hash as a share."""
    digits = hashlib.sha256(b":".join([experiment_id.encode(), unit_id.encode()])).hexdigest()[:16]
    return Fraction(int(digits, 16), 16**16) < Fraction(on_fraction)


def arm_of(experiment_id: str, unit_id: str, on_fraction: float) -> str:
    return Assignment(experiment_id=experiment_id, unit_id=unit_id, on_fraction=on_fraction).arm


@given(TEXT, TEXT, st.floats(0, 1))
def test_a_unit_is_on_if_its_hash_is_below_the_fraction(experiment: str, unit: str, fraction: float) -> None:
    assert arm_of(experiment, unit, fraction) == ("on" if is_on(experiment, unit, fraction) else "off")


@given(TEXT, TEXT)
def test_a_larger_fraction_keeps_the_units_that_were_on(experiment: str, unit: str) -> None:
    arms = [arm_of(experiment, unit, share / 8) for share in range(9)]
    first_on = arms.index("on")
    assert arms == ["off"] * first_on + ["on"] * (9 - first_on)
    assert first_on > 0


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_the_share_of_10_000_units_is_the_fraction(fraction: float) -> None:
    """Five standard deviations, which correct assignments exceed once in two million."""
    on = sum(arm_of("shares", f"user-{number}", fraction) == "on" for number in range(10_000))
    assert abs(on - 10_000 * fraction) < 5 * (10_000 * fraction * (1 - fraction)) ** 0.5


def test_two_experiments_assign_the_same_units_independently() -> None:
    both = sum(arm_of("one", str(unit), 0.5) == arm_of("two", str(unit), 0.5) for unit in range(10_000))
    assert abs(both - 5_000) < 250


def test_the_arm_of_known_units_never_changes() -> None:
    """Values by `printf lessons:a | sha256sum`, whose first digits are below 8 for units that are on."""
    arms = {unit: arm_of("lessons", unit, 0.5) for unit in "abcdef"}
    assert arms == {"a": "off", "b": "off", "c": "off", "d": "on", "e": "off", "f": "on"}


@pytest.mark.parametrize(("unit", "arm", "mode"), [(ON_UNIT, "on", "steer"), (OFF_UNIT, "off", "observe")])
def test_a_run_has_the_mode_of_its_arm_and_records_it(unit: str, arm: str, mode: str) -> None:
    sink = RecordingSink()
    with client(speaks("Look again. It failed."), sinks=[sink]) as rb:
        session = rb.session(**EXPERIMENT, unit_id=unit, metadata={"ticket": 7})
        run(session, 2)
    assert (session.run.mode, session.step_log[1].mode) == (mode, mode)
    assert bool(session.step_log[1].intervention_texts) == (arm == "on")
    assert bool(session.step_log[1].withheld_texts) == (arm == "off")
    start = next(event.as_dict() for event in sink.events if event.as_dict()["event"] == "run_start")
    assert start["metadata"] == {
        "ticket": 7, "experiment_id": "lessons", "arm": arm, "assignment_unit": unit, "on_fraction": 0.5,
    }  # fmt: skip


def test_the_unit_is_the_run_by_default_and_the_fraction_a_half() -> None:
    run_info = client().session(experiment_id="lessons", run_id=OFF_UNIT).run
    assert run_info.metadata == Assignment(experiment_id="lessons", unit_id=OFF_UNIT, on_fraction=0.5).metadata()
    nameless = client().session(experiment_id="lessons").run
    assert nameless.metadata["assignment_unit"] == nameless.run_id


def test_a_long_run_id_is_assigned_by_the_id_that_the_run_has() -> None:
    info = client().session(experiment_id="lessons", run_id="r" * 300).run
    assert info.metadata["assignment_unit"] == info.run_id
    assert info.mode == ("steer" if is_on("lessons", info.run_id, 0.5) else "observe")


def test_a_snapshot_keeps_the_arm_of_its_run() -> None:
    for unit in (ON_UNIT, OFF_UNIT):
        first = client().session(experiment_id="lessons", run_id=unit)
        begin(first, 0)
        second = client().session(experiment_id="lessons", snapshot=first.trace.snapshot())
        assert (second.run.mode, second.run.metadata) == (first.run.mode, first.run.metadata)


def test_another_process_assigns_the_same_arms() -> None:
    code = """
import json, sys
from reasonblocks import ReasonBlocks
rb = ReasonBlocks()
print(json.dumps([rb.session(experiment_id="lessons", unit_id=f"user {n} ü").run.mode for n in range(64)]))
"""
    expected = ["steer" if is_on("lessons", f"user {number} ü", 0.5) else "observe" for number in range(64)]
    assert json.loads(printed(code)) == expected


# ------------------------------------------------------------ runs within runs


def test_a_run_is_in_the_arm_of_the_run_that_starts_it() -> None:
    rb = client()
    outer = rb.session(experiment_id="lessons", run_id=OFF_UNIT)
    for options in ({}, EXPERIMENT, {"experiment_id": "lessons", "run_id": ON_UNIT, "on_fraction": 1.0}):
        inner = rb.session(parent_run_id=outer.run.run_id, **options)
        innermost = rb.session(parent_run_id=inner.run.run_id)
        assert (inner.run.mode, innermost.run.mode) == ("observe", "observe")
        assert inner.run.metadata == innermost.run.metadata == outer.run.metadata


def test_the_options_of_a_started_run_precede_the_arm_of_its_caller() -> None:
    rb = client()
    outer = rb.session(experiment_id="lessons", run_id=OFF_UNIT).run.run_id
    assert rb.session(parent_run_id=outer, mode="steer").run.metadata == {}
    assert rb.session(parent_run_id=outer, **EXPERIMENT, unit_id=ON_UNIT).run.mode == "steer"
    other = rb.session(parent_run_id=outer, experiment_id="other", on_fraction=1.0).run
    assert (other.mode, other.metadata["experiment_id"]) == ("steer", "other")


def test_only_the_newest_assignments_are_kept() -> None:
    kept = Assignments()
    for number in range(5_000):
        kept.keep(str(number), Assignment(experiment_id="e", unit_id="u", on_fraction=0.5))
    assert (len(kept), next(iter(kept)), next(reversed(kept))) == (4_096, "904", "4999")


# ------------------------------------------------------------ clients that steer nothing


def test_a_client_that_observes_records_no_arm() -> None:
    for unit in (ON_UNIT, OFF_UNIT):
        info = client(mode="observe").session(**EXPERIMENT, unit_id=unit).run
        assert info.mode == "observe"
        assert info.metadata == {"experiment_id": "lessons", "assignment_unit": unit, "on_fraction": 0.5}


def test_a_disabled_client_records_no_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    assert "arm" not in ReasonBlocks().session(**EXPERIMENT, unit_id=ON_UNIT).run.metadata


def test_an_adapter_may_ask_for_the_mode_of_its_runs() -> None:
    rb = client()
    asked = [RunOptions(), RunOptions(mode="observe"), RunOptions(**EXPERIMENT)]
    asked += [RunOptions(**EXPERIMENT, unit_id=unit) for unit in (ON_UNIT, OFF_UNIT)]
    assert [rb.run_mode(options) for options in asked] == ["steer", "observe", "steer", "steer", "observe"]
    watching = client(mode="observe")
    modes = [watching.run_mode(options) for options in asked if options.mode is None]
    assert modes == ["observe"] * 4


# ------------------------------------------------------------ without a server


def test_the_log_and_the_report_of_an_embedded_run_name_the_arm(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with client(sinks=[JsonlSink(path)]) as rb:
        run(rb.session(**EXPERIMENT, unit_id=OFF_UNIT), 2)
    (log,) = read_logs(str(path))
    assert isinstance(log, RunLog)
    page = page_of_log(log)
    assert page.experiment == "lessons, off"
    assert "lessons, off" in run_page(page)


def test_an_experiment_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"^mode='steer': an experiment chooses the mode"):
        client().session(experiment_id="lessons", mode="steer")
    with pytest.raises(ConfigError, match=r"^on_fraction=0\.5: needs an experiment_id"):
        client().session(on_fraction=0.5)
