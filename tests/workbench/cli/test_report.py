"""`reasonblocks report` and `replay --report`: which files they read, and what they write."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import JsonlSink, SQLiteMonitorSink
from reasonblocks.events import Event
from reasonblocks_workbench.report import html
from reasonblocks_workbench.traces import RunLog
from tests.workbench.cli.conftest import Command, Write
from tests.workbench.report.markup import Element, parsed
from tests.workbench.report.runs import hostile, log, step, told

RECORDED: dict[str, Any] = {
    "run_id": "recorded", "task": "Fix it.", "outcome": "failure",
    "steps": [{"thought": "I run the tests.", "action": "run_tests", "observation": "3 failed"}] * 6,
}  # fmt: skip


def events_of(*logs: RunLog) -> Iterable[Event]:
    for one in logs:
        assert one.start is not None
        yield one.start
        yield from one.steps
        if one.finish is not None:
            yield one.finish


def named(run_id: str, **info: Any) -> RunLog:
    return log(
        step(0, run_id=run_id), told(1, run_id=run_id), step(2, run_id=run_id, final=True), run_id=run_id, **info
    )


@pytest.fixture
def logs(tmp_path: Path) -> list[str]:
    """Two logs, of either sink."""
    paths = [str(tmp_path / "runs.jsonl"), str(tmp_path / "runs.db")]
    for sink, events in (
        (JsonlSink(paths[0]), events_of(named("one"), named("two"))),
        (SQLiteMonitorSink(paths[1]), events_of(named("three", outcome=None))),
    ):
        for event in events:
            sink.emit(event)
        sink.close()
    return paths


def titles(path: Path | str) -> list[str]:
    """The ids of the runs that a list links."""
    table = parsed(Path(path).read_text(encoding="utf-8")).find("table", class_="runs")[0]
    return [one.text.split(" · ")[-1] for one in table.find("bdi", class_="sub")]


def fragment(path: Path, index: int) -> Element:
    block = parsed(path.read_text(encoding="utf-8")).find("script", id=f"packed-{index}")[0]
    return parsed(gzip.decompress(base64.b64decode(block.text)).decode("utf-8"))


def test_logs_and_recordings_become_one_file(command: Command, write: Write, logs: list[str], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = command("report", *logs, write("recorded.jsonl", RECORDED), "--out", str(out), "--title", "My runs")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{out}: 4 runs, 12 steps, 0.")
    assert titles(out) == ["one", "two", "three", "recorded"]
    assert "My runs" in parsed(out.read_text(encoding="utf-8")).find("h1")[0].words
    assert "What the agent was told" in fragment(out, 0).words
    assert "unfinished" in fragment(out, 2).words
    assert "replayed recording" in fragment(out, 3).words


def test_a_single_run_is_a_page_of_its_own(command: Command, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert command("report", write("recorded.jsonl", RECORDED), "--out", str(out)).code == 0
    root = parsed(out.read_text(encoding="utf-8"))
    assert root.find("h1")[0].words == "recorded"
    assert len(root.find("tr", class_="row")) == 7


def test_every_run_gets_a_page_in_a_folder(command: Command, logs: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "new" / "pages"
    done = command("report", *logs, "--pages", str(folder))
    assert done.code == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["index.html", "run-00001-one.html", "run-00002-two.html", "run-00003-three.html"]
    table = parsed((folder / "index.html").read_text(encoding="utf-8")).find("table", class_="runs")[0]
    assert [one.attributes["href"] for one in table.find("a")] == names[1:]
    page = parsed((folder / names[1]).read_text(encoding="utf-8"))
    assert page.find("nav")[0].find("a")[0].attributes["href"] == "index.html"


def test_an_older_report_in_the_folder_is_replaced(command: Command, logs: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    assert command("report", *logs, "--pages", str(folder)).code == 0
    (folder / ".nojekyll").write_text("", encoding="utf-8")
    assert command("report", logs[1], "--pages", str(folder)).code == 0
    assert sorted(path.name for path in folder.iterdir()) == [".nojekyll", "index.html", "run-00001-three.html"]
    assert titles(folder / "index.html") == ["three"]


@pytest.mark.parametrize("name", ["index.html", "run-00001-one.html", "notes.txt", "run-00001-one.html.bak"])
def test_a_folder_with_foreign_files_is_refused(command: Command, logs: list[str], tmp_path: Path, name: str) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / name).write_text("<p>Mine.</p>", encoding="utf-8")
    done = command("report", *logs, "--pages", str(folder))
    assert done.code == 2
    assert f"such as {name}" in done.err
    assert [(path.name, path.read_text(encoding="utf-8")) for path in folder.iterdir()] == [(name, "<p>Mine.</p>")]


def test_a_linked_page_is_foreign(command: Command, logs: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    assert command("report", *logs, "--pages", str(folder)).code == 0
    (folder / "index.html").rename(tmp_path / "mine.html")
    (folder / "index.html").symlink_to(tmp_path / "mine.html")
    assert command("report", *logs, "--pages", str(folder)).code == 2


def test_where_a_report_cannot_be_written_is_told(command: Command, logs: list[str], tmp_path: Path) -> None:
    out = tmp_path / "none" / "report.html"
    done = command("report", *logs, "--out", str(out))
    assert (done.code, done.err) == (1, f"reasonblocks: cannot write {out}: no such folder\n")
    done = command("report", *logs, "--pages", logs[0])
    assert (done.code, "is not a folder" in done.err) == (2, True)


def test_the_name_of_a_page_has_nothing_of_a_hostile_id(command: Command, tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "runs.jsonl")
    for run_id in ("../../etc/passwd", "a/b?c#d", "///", hostile().run_id.replace("\ud800", "")):
        for event in events_of(named(run_id)):
            sink.emit(event)
    sink.close()
    folder = tmp_path / "pages"
    assert command("report", str(tmp_path / "runs.jsonl"), "--pages", str(folder)).code == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names[:4] == ["index.html", "run-00001-etc-passwd.html", "run-00002-a-b-c-d.html", "run-00003.html"]
    assert len(names) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pages", "runs.jsonl"]


def test_the_limit_is_that_of_each_file(command: Command, logs: list[str], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    assert command("report", *logs, "--out", str(out), "--limit", "1").code == 0
    assert titles(out) == ["one", "three"]


def test_recordings_are_replayed_under_the_settings(command: Command, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    path = write("recorded.jsonl", RECORDED)
    assert command("report", path, "--out", str(out), "--stop-when", "stalled", "--slow-threshold", "0.31").code == 0
    assert "SLOW 0.31" in parsed(out.read_text(encoding="utf-8")).words


def test_recordings_can_be_judged_by_each_other(command: Command, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    steps = RECORDED["steps"] * 2
    others = [
        {**RECORDED, "run_id": f"other-{number}", "task": f"Task {number}.", "source": "clerk", "steps": steps}
        for number in range(24)
    ]
    assert command("report", write("recorded.jsonl", *others), "--out", str(out), "--profile", "own").code == 0
    assert "judged by" in fragment(out, 0).words


def test_a_disabled_library_judges_nothing_and_says_so(
    command: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", "1")
    done = command("report", write("recorded.jsonl", RECORDED), "--out", str(tmp_path / "report.html"))
    assert "REASONBLOCKS_DISABLED=1" in done.err


def test_malformed_lines_are_told_and_the_rest_is_written(command: Command, write: Write, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    path = write("runs.jsonl", *(event.as_dict() for event in events_of(named("one"))), "{", {"event": "step"})
    done = command("report", path, "--out", str(out))
    assert done.code == 0
    assert "runs.jsonl:6" in done.err
    assert out.exists()


@pytest.mark.parametrize("content", [[], ["{}"], ["no json"]], ids=["empty", "unknown", "not JSON"])
def test_without_a_run_nothing_is_written(command: Command, write: Write, tmp_path: Path, content: list[str]) -> None:
    out = tmp_path / "report.html"
    done = command("report", write("runs.jsonl", *content), "--out", str(out))
    assert done.code == 1
    assert "no run could be read" in done.err
    assert not out.exists()


def test_a_missing_file_is_told(command: Command, tmp_path: Path) -> None:
    done = command("report", str(tmp_path / "none.db"), "--out", str(tmp_path / "report.html"))
    assert done.code == 1
    assert "none.db" in done.err


def test_a_file_that_is_read_is_never_overwritten(command: Command, logs: list[str]) -> None:
    before = Path(logs[0]).read_bytes()
    done = command("report", logs[0], "--out", logs[0])
    assert done.code == 2
    assert "--out" in done.err
    assert Path(logs[0]).read_bytes() == before


@pytest.mark.parametrize(
    "flags", [(), ("--out", "a.html", "--pages", "b"), ("--out", "a.html", "--limit", "0"), ("--out", "")]
)
def test_wrong_flags_are_refused(command: Command, logs: list[str], flags: tuple[str, ...]) -> None:
    assert command("report", *logs, *flags).code == 2


def test_a_replay_can_also_write_its_runs(command: Command, write: Write, tmp_path: Path) -> None:
    out, path = tmp_path / "report.html", write("recorded.jsonl", RECORDED, {**RECORDED, "run_id": "second"})
    plain = command("replay", path)
    done = command("replay", path, "--report", str(out))
    assert done.out == f"{plain.out}{out}: 2 runs, 12 steps, {out.stat().st_size / 1e6:.1f} MB\n"
    assert titles(out) == ["recorded", "second"]
    assert command("replay", path, "--run", "second", "--report", str(out)).code == 0
    assert parsed(out.read_text(encoding="utf-8")).find("h1")[0].words == "second"


@pytest.mark.parametrize("other", [("--json",), ("--diff", "a.toml", "b.toml")])
def test_the_report_of_a_replay_goes_with_one_set_of_settings(
    command: Command, write: Write, tmp_path: Path, other: tuple[str, ...]
) -> None:
    done = command("replay", write("recorded.jsonl", RECORDED), "--report", str(tmp_path / "a.html"), *other)
    assert done.code == 2
    assert "--report" in done.err


def test_a_replay_without_a_report_needs_no_jinja2(command: Command, write: Write) -> None:
    html.environment.cache_clear()
    assert command("replay", write("recorded.jsonl", RECORDED), "--json").code == 0
    assert json.loads(command("replay", write("recorded.jsonl", RECORDED), "--json").out)["run_id"] == "recorded"
    assert html.environment.cache_info().currsize == 0


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--budget", "calls=40"), "--budget"),
        (("--weight", "semantic_loop=1", "--weight", "late_sprawl=1", "--strict"), "--weight, --strict"),
        (("--no-e-traces", "--slow-threshold", "0.5"), "--e-traces"),
        (("--config", "c.toml", "--second-look", "always"), "--config, --second-look"),
    ],
)
def test_options_without_effect_on_a_log_are_refused(
    command: Command,
    logs: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text('patience = "3 of 5"')
    done = command("report", *logs, "--out", "out.html", *flags)
    assert (done.code, done.out) == (2, "")
    assert f"reasonblocks: {named}: no effect on {logs[0]}, a log" in done.err
    assert not Path("out.html").exists()


def test_the_thresholds_of_a_log_can_be_set(command: Command, logs: list[str], write: Write, tmp_path: Path) -> None:
    config = write("c.toml", "[fsm_thresholds]", "slow_threshold = 0.5")
    done = command("report", *logs, "--out", str(tmp_path / "out.html"), "--config", config, "--fast-threshold", "0.1")
    assert (done.code, done.err) == (0, "")


def test_a_wrong_threshold_of_a_log_is_named_as_it_was_typed(command: Command, logs: list[str], tmp_path: Path) -> None:
    done = command("report", *logs, "--out", str(tmp_path / "out.html"), "--slow-threshold", "9")
    assert (done.code, done.err) == (2, "reasonblocks: --slow-threshold='9': must be in [0, 1]\n")


def test_one_step_is_not_called_steps(command: Command, write: Write, tmp_path: Path) -> None:
    path = write("a.jsonl", {"steps": [{"thought": "I look."}]})
    assert ": 1 run, 1 step, " in command("report", path, "--out", str(tmp_path / "out.html")).out
