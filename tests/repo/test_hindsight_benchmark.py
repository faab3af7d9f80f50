"""benchmarks/monitors.py judges interventions by what the run did next: on our own runs, and as the shared script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from _monitors.baselines import BASELINES, stale_in_a_row
from _monitors.build import other_build
from _monitors.cost import cost_table
from _monitors.excerpts import as_markdown, excerpts, missed
from _monitors.flat import FlatStep
from _monitors.hindsight import Hindsight, hindsight, overall
from _monitors.hindsight_tables import monitors_table, troubles_table
from _monitors.own_levels import levels, own_level_table
from _monitors.sources import CLOSED, Source, read_sources
from _monitors.staleness import stale_steps, troubles
from _monitors.trail import Intervention, Trail, library

from reasonblocks.engine.own_level import KEPT
from reasonblocks.types import Step, Usage
from reasonblocks_workbench.calibration import shipped
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.whole import in_whole

pytestmark = in_whole
ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
SCRIPT = SHARED / "bench" / "hindsight.py"
PAGE = "the reader opens the file and then counts every line that begins with a hash sign"
OTHER_PAGE = "nobody at that address has ever heard of such an invoice or its late payment"


def step(call: str, result: str) -> FlatStep:
    return {"action": "bash", "action_input": call, "observation": result}


def stale(*steps: tuple[str, str]) -> list[bool]:
    return list(stale_steps([step(*each) for each in steps]))


def test_a_call_with_the_same_result_as_the_last_time_is_stale() -> None:
    assert stale(("ls", "a"), ("ls", "a")) == [False, True]


def test_a_call_with_a_new_result_is_not_stale() -> None:
    assert stale(("ls", "a"), ("ls", "b")) == [False, False]


def test_a_result_that_was_there_before_is_stale_whatever_the_call_was() -> None:
    assert stale(("cat a", PAGE), ("cat b", PAGE)) == [False, True]


def test_a_short_result_of_another_call_is_not_stale() -> None:
    assert stale(("touch a", "ok"), ("touch b", "ok")) == [False, False]


def test_only_the_first_3000_characters_of_a_result_count() -> None:
    long = " ".join(f"word{number}" for number in range(1_000))
    assert stale(("cat a", long), ("cat b", f"{long} {OTHER_PAGE}")) == [False, True]


def test_an_error_line_that_comes_again_with_other_digits_is_stale() -> None:
    assert stale(("a", "Error: no such row, line 3"), ("b", "Error: no such row, line 4")) == [False, True]


def test_an_error_line_that_comes_again_in_a_result_that_is_mostly_new_is_not_stale() -> None:
    assert stale(("a", "Error: no such row, line 3"), ("b", f"{PAGE}\nError: no such row, line 3")) == [False, False]


def in_between(count: int) -> list[tuple[str, str]]:
    return [(f"in between {number}", f"{number}") for number in range(count)]


@pytest.mark.parametrize(("between", "expected"), [(5, True), (6, False)])
def test_an_error_line_is_remembered_for_six_steps(between: int, expected: bool) -> None:
    first, again = "Error: no such row, line 3", "Error: no such row, line 4"
    assert stale(("a", first), *in_between(between), ("b", again))[-1] is expected


def test_trouble_begins_at_a_stale_step_from_which_four_of_six_are_stale() -> None:
    assert list(troubles([True, True, False, True, True, False])) == [0]
    assert list(troubles([False, True, True, True, True, False, False])) == [1]
    assert list(troubles([True, True, True, False, False, False])) == []


def test_the_next_trouble_begins_six_steps_later_at_the_earliest() -> None:
    assert list(troubles([True] * 13)) == [0, 6]


def run(steps: int, *, task: str, failing: bool = False) -> RecordedRun:
    return RecordedRun(
        run_id=task, steps=(Step(thought="Next."),) * steps, usages=(Usage(),) * steps, file="runs.jsonl", line=1,
        outcome="failure" if failing else "success", task_key=task,
    )  # fmt: skip


def told(*steps: int, monitor: str | None = None) -> Trail:
    return Trail(scores=(), told=tuple(Intervention(step=at, monitor=monitor) for at in steps))


def judged(*runs: tuple[str, Trail], failing: Sequence[bool] = (), boot: int = 0) -> Hindsight:
    """Runs by their steps, `x` for a stale one, and what was said in them."""
    ends = failing or [False] * len(runs)
    every = [run(len(marks), task=str(number), failing=bad) for number, ((marks, _), bad) in enumerate(zip(runs, ends))]
    flags = [[mark == "x" for mark in marks] for marks, _ in runs]
    return hindsight(Source(name="agent", runs=tuple(every)), flags, [trail for _, trail in runs], boot)


def figure(found: Hindsight, name: str) -> float:
    return float(found.figures[name][0])


def test_what_comes_next_is_the_share_of_stale_steps_among_the_five_after() -> None:
    assert figure(judged(("-x" + "xx---" + "xxx", told(1))), "next") == pytest.approx(2 / 5)


def test_a_word_is_needless_if_at_most_one_of_the_next_four_steps_is_stale() -> None:
    assert figure(judged(("x" + "x---" + "xx", told(0))), "needless") == 1
    assert figure(judged(("x" + "x--x" + "--", told(0))), "needless") == 0


def test_an_intervention_with_fewer_than_three_steps_after_it_is_not_judged() -> None:
    assert judged(("xxxxxx", told(2, 3))).interventions == 1


def test_the_base_is_the_share_after_steps_of_equal_index_into_which_nothing_was_said() -> None:
    found = judged(("xxxxxx", told(1)), ("x-x-x-", told()), ("xx----", told()), ("xxxxxx", told(0)))
    after_step_0 = (5 / 5 + 2 / 5 + 1 / 5) / 3  # of all runs but the last
    after_step_1 = (2 / 4 + 0 / 4) / 2  # of the two runs into which nothing was said there or shortly before
    assert figure(found, "base") == pytest.approx((after_step_0 + after_step_1) / 2)


def test_a_word_is_early_at_one_of_the_first_three_steps_of_a_trouble() -> None:
    found = judged(("-xxxxxx", told(3)), ("-xxxxxx", told(4)), ("-xxxxxx", told(0)))
    assert found.counts.troubles.tolist() == [3]
    assert figure(found, "early") == pytest.approx(1 / 3)


def test_runs_with_a_word_are_counted_by_their_outcome() -> None:
    found = judged(("-----", told(4)), ("-----", told()), ("-----", told(0)), failing=[True, True, False])
    assert [figure(found, name) for name in ("said", "said_failing", "said_passing")] == pytest.approx(
        [2 / 3, 1 / 2, 1]
    )


def test_runs_of_three_steps_do_not_count() -> None:
    assert judged(("xxx", told(0)), ("----", told())).counts.runs.tolist() == [1]


def test_every_redraw_of_the_tasks_has_its_own_figures() -> None:
    found = judged(("xxxxx", told(0)), ("x----", told(0)), boot=50)
    assert set(np.round(found.figures["needless"], 3)) == {0.0, 0.5, 1.0}


def test_only_sources_with_ten_interventions_count_in_the_means() -> None:
    often, seldom = judged(*[("xxxxx", told(0))] * 10), judged(("x----", told(0)))
    assert float(overall([often, seldom])["needless"][0]) == 0


def test_three_stale_steps_in_a_row_fire_at_most_five_times_and_every_third_step() -> None:
    trail = stale_in_a_row([False] + [True] * 30)
    assert [step for step, fires in enumerate(trail.fires) if fires] == [3, 6, 9, 12, 15]


def test_at_its_last_step_a_baseline_says_nothing() -> None:
    assert stale_in_a_row([False, True, True, True]).interventions == ()


def test_a_monitor_counts_where_it_fires_in_one_of_a_hundred_failing_runs() -> None:
    source = Source(name="agent", runs=tuple(run(5, task=str(number), failing=True) for number in range(200)))
    one = Trail(scores=(), fired=(("semantic_loop",),), told=told(0, monitor="late_sprawl").told)
    two = Trail(scores=(), fired=(("semantic_loop", "late_sprawl"),))
    quiet = [Trail(scores=())] * 198
    rows = {row["monitor"]: row for row in monitors_table([source], [[[True] * 5] * 200], [[one, two, *quiet]]).rows}
    loop, sprawl = rows["semantic_loop"], rows["late_sprawl"]
    assert (loop["agent"], loop["fires_in"], loop["says_in"], loop["interventions"]) == (0.01, 1, 0, 0)
    assert (sprawl["agent"], sprawl["fires_in"], sprawl["interventions"], sprawl["needless"]) == (0.005, 0, 1, 0)


def test_a_trouble_without_a_word_has_the_reason_of_the_gate() -> None:
    stale = [True] * 6
    gates: list[tuple[str | None, ...]] = [
        ("quiet", "inject", "cooldown"), ("cooldown", "quiet", "cap"), ("quiet", "quiet", "cap"), ("quiet",) * 3,
    ]  # fmt: skip
    trails = [Trail(scores=(), gates=(*three, None, None, None), told=told(*at).told)
              for three, at in zip(gates, ((1,), (), (), ()))]  # fmt: skip
    source = Source(name="agent", runs=tuple(run(6, task=str(number)) for number in range(4)))
    (row,) = troubles_table([source], [[stale] * 4], [trails]).rows
    assert {name: row[name] for name in ("early", "duplicate", "cooldown", "cap", "quiet")} == {
        "early": 0.25, "duplicate": 0, "cooldown": 0.25, "cap": 0.25, "quiet": 0.25,
    }  # fmt: skip


def test_a_monitor_crosses_its_threshold_where_it_was_below_one_step_before() -> None:
    source = Source(name="agent", runs=(run(9, task="a"),))
    over = ((), ("late_sprawl",), ("late_sprawl",), (), ("late_sprawl",), (), (), (), ("late_sprawl",))
    stale = [False, False, True, True, False, False, False, False, False]
    (row,) = [row for row in monitors_table([source], [[stale]], [[Trail(scores=(), fired=over)]]).rows
              if row["monitor"] == "late_sprawl"]  # fmt: skip
    # After step 1 two of four steps are stale, after step 4 none; after step 8 there are none.
    assert (row["crossings"], row["idle"]) == (2, 0.5)


def write(path: Path, name: str) -> str:
    steps = [step("cat a", PAGE)] * 8
    line = {"run_id": "same", "source": name, "task": "Read it.", "outcome": "failure", "steps": steps}
    path.write_text("".join(json.dumps(line) + "\n" for _ in range(2)), encoding="utf-8")
    return str(path)


def test_another_build_is_judged_by_what_its_replay_prints(tmp_path: Path) -> None:
    runs = [each for each in read_runs(write(tmp_path / "runs.jsonl", "agent")) if isinstance(each, RecordedRun)]
    here, there = library()(runs), other_build(str(ROOT))(runs)
    assert there[0].interventions
    assert [(each.scores, each.fires, each.states, each.interventions) for each in there] == [
        (each.scores, each.fires, each.states, each.interventions) for each in here
    ]


def test_both_builds_time_the_steps_of_the_same_runs(tmp_path: Path) -> None:
    table = cost_table([of_length(tmp_path, count=5, runs=2)], str(ROOT))
    rows = {row["build"]: row for row in table.rows}
    assert [rows[build]["steps"] for build in ("this", str(ROOT))] == [10, 10]
    assert all(isinstance(rows["ratio"][name], float) for name in ("features_us", "monitors_us", "whole_us"))


SEEN = Trail(scores=(), summary=dict.fromkeys(KEPT, 1.0))


def of_tasks(*tasks: str) -> Source:
    return Source(name="agent", runs=tuple(run(4, task=task) for task in tasks))


def test_every_run_is_judged_once_by_the_level_of_runs_of_other_tasks() -> None:
    found = list(levels(of_tasks(*map(str, range(40))), [SEEN] * 40, 20, draw=1))
    assert sorted(place for held, _ in found for place in held) == list(range(40))
    assert shipped() not in [calibration for _, calibration in found]


def test_runs_of_the_same_task_give_no_level() -> None:
    found = levels(of_tasks(*["a"] * 40), [SEEN] * 40, None, draw=1)
    assert [calibration for held, calibration in found if held] == [shipped()]


def test_fewer_than_twenty_runs_give_no_level() -> None:
    found = levels(of_tasks(*map(str, range(40))), [SEEN] * 40, 19, draw=1)
    assert [calibration for _, calibration in found] == [shipped()] * 2


def test_own_levels_are_compared_with_the_shipped_thresholds(tmp_path: Path) -> None:
    source = of_length(tmp_path, count=5, runs=2)
    table = own_level_table([source], [[[True] * 5] * 2], [library()(source.runs)], boot=0, workers=1)
    assert [row["runs"] for row in table.rows] == ["shipped", "20", "20", "20", "50", "50", "50", "all"]


def test_a_folder_without_the_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="holds no package"):
        other_build(str(tmp_path))


def test_a_source_that_is_left_out_is_not_even_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    closed = sorted(CLOSED)[0]
    files = [str(tmp_path / f"{closed}.jsonl.gz"), write(tmp_path / "runs.jsonl", closed), write(tmp_path / "a", "a")]
    assert [source.name for source in read_sources(files, without=CLOSED)] == ["a"]
    assert capsys.readouterr().err == ""


def of_length(folder: Path, *, count: int, runs: int = 1) -> Source:
    """Runs in which step k makes the call `cat k`."""
    name = f"agent-{count}"
    lines = [{"source": name, "outcome": "failure", "steps": [step(f"cat {k}.", PAGE) for k in range(count)]}] * runs
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (source,) = read_sources([str(file)])
    return source


def test_an_excerpt_has_the_eight_steps_before_the_text_and_six_after_it(tmp_path: Path) -> None:
    (found,) = excerpts([of_length(tmp_path, count=30)], [[told(20)]], 1, seed=1)
    assert [each["action_input"] for each in found.steps] == [f"cat {k}." for k in range(13, 27)]
    assert (found.earlier[0].split(" -> ")[0], len(found.earlier)) == ("-21: bash cat 0.", 13)


def test_a_page_of_excerpts_counts_the_calls_from_the_text(tmp_path: Path) -> None:
    text = Trail(scores=(), told=(Intervention(step=2, text="Look again."),))
    page = "\n".join(as_markdown(excerpts([of_length(tmp_path, count=5)], [[text]], 1, seed=1), 1))
    at = [page.index(f"Call {ago} (step {k})") for ago, k in (("-3", 0), ("-2", 1), ("-1", 2), ("+1", 3), ("+2", 4))]
    assert at == sorted(at)
    assert at[2] < page.index("> Look again.") < at[3]


def test_a_trouble_is_missed_if_nothing_is_said_at_its_first_three_steps() -> None:
    stale = [[[False] + [True] * 6] * 2]
    ((heard, unheard),) = missed(stale, [[told(3), told(4)]])
    assert [one.step for one in heard.interventions] == []
    assert [one.step for one in unheard.interventions] == [3]


def test_excerpts_are_drawn_from_every_source_alike(tmp_path: Path) -> None:
    sources = [of_length(tmp_path, count=5, runs=20), of_length(tmp_path, count=6, runs=3)]
    found = excerpts(sources, [[told(1)] * 20, [told(1)] * 3], 8, seed=1)
    assert [sum(one.source == source.name for one in found) for source in sources] == [5, 3]


def test_another_seed_draws_other_excerpts(tmp_path: Path) -> None:
    source = of_length(tmp_path, count=5, runs=50)
    draws = [excerpts([source], [[told(1)] * 50], 5, seed) for seed in (1, 1, 2)]
    lines = [[one.run_id for one in found] for found in draws]
    assert lines[0] == lines[1] != lines[2]


NAMES = ("hotpot_react", "tau_retail", "intercode_react")
SAME = {"stale": "stale", "inj": "interventions", "next": "next", "base": "base", "needless": "needless",
        "trouble": "troubles", "early": "early", "flagged": "said", "runs": "runs", "steps": "steps"}  # fmt: skip


@pytest.mark.skipif(not SCRIPT.is_file(), reason="the shared script is not beside the repository")
def test_the_shared_script_gives_the_same_figures() -> None:
    env = {**os.environ, "PYTHONWARNINGS": "default", "CORPUS": str(SHARED / "corpus")}
    shared = [sys.executable, str(SCRIPT), "--split", "dev", "--sources", ",".join(NAMES)]
    files = [str(SHARED / "corpus" / "dev" / f"{name}.jsonl.gz") for name in NAMES]
    ours = [sys.executable, str(ROOT / "benchmarks" / "monitors.py"), *files, "--json", "--boot", "2"]
    theirs, printed = (
        subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.splitlines()
        for command in (shared, ours)
    )
    expected = {row["source"]: row for row in map(json.loads, theirs[:-1])}
    found = {row["source"]: row for row in map(json.loads, printed) if row["table"] == "needed"}
    assert {(name, key): _point(found[name][own]) for name in NAMES for key, own in SAME.items()} == pytest.approx(
        {(name, key): expected[name][key] for name in NAMES for key in SAME}, abs=5e-4, nan_ok=True
    )


def _point(cell: object) -> object:
    return cell[0] if isinstance(cell, list) else cell


def test_the_simplest_rule_is_a_baseline_of_its_own(tmp_path: Path) -> None:
    (source,) = read_sources([write(tmp_path / "runs.jsonl", "agent")])
    assert BASELINES["stale"](source.runs)[0] == stale_in_a_row([False] + [True] * 7)
