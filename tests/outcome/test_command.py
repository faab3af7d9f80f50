"""`benchmarks/outcome.py` from its options to its tables, on an endpoint of a script."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import outcome
import pytest
from _outcome.rows import Row
from _outcome.store import read
from _outcome.through import FRAMEWORKS, Endpoint
from _outcome.through.task import Task

from reasonblocks import ReasonBlocks
from reasonblocks.types import Usage
from reasonblocks_testing import Turn, tool_call
from reasonblocks_testing.server import Asked, ProviderError, ScriptedServer
from reasonblocks_workbench.cli import main as reasonblocks
from tests.outcome.made import shadow

MODEL = "agent-model"
numbers = count()


def first_door(asked: Asked) -> Turn:
    """Take the first door that the newest result names: to and fro, in most houses."""
    shown = next(found for text in reversed(asked.texts) if (found := re.search(r"Doors: (\w+)", text)))
    call = tool_call(f"call-{next(numbers)}", "go", {"door": shown[1]})
    return Turn(text="I go.", tool_calls=(call,), usage=Usage(input=50, output=5, cache_read=20))


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(first_door) as running:
        yield running


Command = Callable[..., str]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Calls the command in an empty folder, and returns what it prints."""
    monkeypatch.setenv("DEV_CWD", str(tmp_path))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def call(*options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["outcome", *options])
        capsys.readouterr()
        outcome.main()
        return capsys.readouterr().out

    return call


def on(server: ScriptedServer, *options: str, seeds: int = 2) -> tuple[str, ...]:
    model = ("--base-url", server.openai_url, "--model", MODEL, "--concurrency", "2")
    return (*model, "--families", "house", "--seeds", str(seeds), "--out", "pilot", *options)


def rows(folder: Path) -> tuple[Row, ...]:
    return read(folder / f"pilot/{MODEL}.tune.jsonl").rows


def refused(command: Command, *options: str) -> str:
    with pytest.raises(SystemExit) as caught:
        command(*options)
    assert isinstance(caught.value.code, str), "the message is the exit's"
    return caught.value.code


# --- runs


def test_the_command_plays_shows_tables_and_a_verdict_and_plays_nothing_twice(
    server: ScriptedServer, command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = command(*on(server))
    played = rows(tmp_path)
    shadows = [row for row in played if row.phase == "shadow"]
    points = [row for row in shadows if row.point is not None]
    assert len(shadows) == 2
    assert points, "no house in which the script gets stuck"
    branches = {(row.seed, row.arm, row.sample) for row in played if row.phase == "branch"}
    assert branches == {(row.seed, arm, sample) for row in points for arm in ("off", "shipped") for sample in (0, 1)}
    steered = [row for row in played if row.arm == "shipped"]
    assert all(row.told and row.told[0].step == row.point for row in steered)
    requests = sum(row.steps - (row.point or 0 if row.phase == "branch" else 0) for row in played)
    assert len(server.requests) == requests
    assert "goals" in printed
    assert MODEL in printed
    assert "No difference is shown yet" in printed

    assert command(*on(server)) == printed
    assert len(server.requests) == requests
    assert rows(tmp_path) == played

    capsys.readouterr()
    assert reasonblocks(["replay", str(tmp_path / f"pilot/{MODEL}.tune.replay.jsonl"), "--json"]) == 0
    replayed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum("run_id" in line for line in replayed) == len(played)


def test_tables_need_no_model_and_json_is_one_object_a_line(server: ScriptedServer, command: Command) -> None:
    command(*on(server, "--shadow", seeds=1))
    asked = len(server.requests)
    lines = command("--out", "pilot", "--tables", "--json").splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert len(server.requests) == asked


def test_whole_runs_have_every_arm(server: ScriptedServer, command: Command, tmp_path: Path) -> None:
    command(*on(server, "--whole", "--arms", "off, rules,off", "--samples", "1", seeds=1))
    assert sorted((row.phase, row.arm) for row in rows(tmp_path)) == [("whole", "off"), ("whole", "rules")]


def forbidden_after(seeds: int) -> Callable[[Asked], Turn]:
    """Refuse every task after the first ones."""
    known: dict[str, None] = {}

    def answer(asked: Asked) -> Turn:
        known.setdefault(asked.task)
        if [*known].index(asked.task) >= seeds:
            raise ProviderError("the key has no quota", status=403)
        return first_door(asked)

    return answer


def test_a_failing_endpoint_keeps_the_finished_runs_and_the_command_goes_on_from_there(
    command: Command, tmp_path: Path
) -> None:
    with ScriptedServer(forbidden_after(1)) as broken:
        message = refused(command, *on(broken, "--shadow", "--concurrency", "1", seeds=4))
    assert message.startswith("BackendError: ")
    assert "HTTP 403" in message
    assert [(row.seed, row.error is None) for row in rows(tmp_path)] == [(0, True), (1, False)]
    with ScriptedServer(first_door) as mended:
        command(*on(mended, "--shadow", seeds=4))
        assert len(mended.requests) == sum(row.steps for row in rows(tmp_path) if row.seed)
    assert {(row.seed, row.error) for row in rows(tmp_path)} == {(seed, None) for seed in range(4)}


def test_an_endpoint_that_never_answers_is_an_error_at_once(command: Command, tmp_path: Path) -> None:
    with ScriptedServer(forbidden_after(0)) as broken:
        assert "HTTP 403" in refused(command, *on(broken, "--shadow"))
    assert rows(tmp_path) == ()


def test_a_task_may_be_the_users_own_file(server: ScriptedServer, command: Command, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("from _outcome.tasks.house import House as Own\n")
    model = ("--base-url", server.openai_url, "--model", MODEL)
    command(*model, "--tasks", "tasks.py:Own", "--seeds", "1", "--shadow", "--out", "pilot")
    assert [row.family for row in rows(tmp_path)] == ["tasks.py:Own"]


def test_runs_of_a_task_that_was_edited_are_refused(server: ScriptedServer, command: Command, tmp_path: Path) -> None:
    options = ("--base-url", server.openai_url, "--model", MODEL, "--tasks", "edited.py:Own", "--shadow")
    written = tmp_path / "edited.py"
    written.write_text("from _outcome.tasks.house import House as Own\n")
    command(*options, "--seeds", "1", "--out", "pilot")
    sys.modules.pop(next(name for name in sys.modules if name.startswith("outcome_tasks_edited_")))
    written.write_text("from _outcome.tasks.hunt import Hunt as Own\n")
    assert "were made with tasks '" in refused(command, *options, "--seeds", "2", "--out", "pilot")


def test_without_a_verdict_it_says_what_to_do(server: ScriptedServer, command: Command) -> None:
    assert "There is no verdict" in command(*on(server, "--shadow"))
    assert "Of 0 branch points, none was helped" in command("--out", "pilot", "--side-by-side", "2")
    fair, stuck = shadow("house", 0, point=None), shadow("house", 1, point=3)
    assert "in none of 1 shadow runs would the agent have been told" in outcome.unjudged([fair])
    assert "in 1 of 2 shadow runs the agent would have been told" in outcome.unjudged([fair, stuck])


# --- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--arms", "off,loud"), "outcome: no such arm: loud; the arms are off, shipped, "),
        (("--arms", "shipped"), "every arm is compared with the arm `off`: name it"),
        (("--arms", "off,rules"), "in branches there are no standing rules: rules would be `off`; add --whole"),
        (("--families", "castle"), "outcome: no such family: castle; the families are house, "),
        (("--seeds", "1001"), "--seeds: a split has 1000 seeds, not 1001"),
        (("--families", "house"), "outcome: name a model: --base-url URL --model NAME, --gguf FILE, or --gpu FILE"),
        (("--base-url", "http://127.0.0.1:1"), "outcome: name a model"),
        (("--through", "langchain"), "--through langchain plays on an endpoint: name --base-url URL --model NAME"),
        (("--gguf", "none.gguf"), "unknown model 'none.gguf'; known are smollm2, "),
        (("--tables",), "outcome: no runs of the split tune in outcome-runs"),
        (("--base-url", "ftp://x", "--model", "m"), "ConfigError: "),
    ],
)
def test_what_cannot_be_run_is_refused_in_plain_words(
    command: Command, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in refused(command, *options)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("option", ["--concurrency", "--samples", "--seeds", "--threads", "--points"])
def test_a_number_below_its_least_is_refused(command: Command, capsys: pytest.CaptureFixture[str], option: str) -> None:
    with pytest.raises(SystemExit) as caught:
        command(option, "-1")
    assert caught.value.code == 2
    assert f"argument {option}: must be at least" in capsys.readouterr().err


def test_a_part_of_a_split_is_played(server: ScriptedServer, command: Command, tmp_path: Path) -> None:
    command(*on(server, "--shadow"), "--seeds", "3-4")
    (path,) = [path for path in (tmp_path / "pilot").iterdir() if "replay" not in path.name]
    assert sorted(row.seed for row in read(path).rows) == [3, 4]


def test_rows_of_another_temperature_are_refused(server: ScriptedServer, command: Command) -> None:
    command(*on(server, "--shadow", seeds=1))
    assert "temperature 0.3" in refused(command, *on(server, "--shadow", "--temperature", "0.7"))


def test_the_columns_are_explained_without_a_run(command: Command) -> None:
    assert "advantage" in command("--columns")


# --- through a framework


def test_a_frameworks_agent_plays_whole_runs_with_and_without_steering_once(
    server: ScriptedServer, command: Command, tmp_path: Path
) -> None:
    pytest.importorskip("langchain_openai", reason="langchain_openai is not installed")
    options = on(server, "--through", "langchain", "--samples", "1", seeds=1)
    command(*options)
    played = rows(tmp_path)
    assert {(row.arm, row.through, row.phase, row.error) for row in played} == {
        ("off", "langchain", "whole", None),
        ("steer", "langchain", "whole", None),
    }
    asked = len(server.requests)
    assert asked == sum(row.steps for row in played)
    command(*options)
    assert (rows(tmp_path), len(server.requests)) == (played, asked)


def test_any_framework_is_given_the_endpoint_and_plays_both_arms(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[Endpoint, bool]] = []

    def by_hand(task: Task, endpoint: Endpoint, rb: ReasonBlocks | None) -> None:
        given.append((endpoint, rb is not None))
        task.answered("I cannot.", calls=False, prompt=10, completion=1, cached=None)

    monkeypatch.setitem(FRAMEWORKS, "langchain", lambda: by_hand)
    monkeypatch.setenv("MY_KEY", "a-key")
    model = ("--base-url", "http://127.0.0.1:9/v1", "--model", MODEL, "--key-env", "MY_KEY", "--families", "house")
    for _ in range(2):
        command(
            *model, "--through", "langchain", "--samples", "1", "--seeds", "1", "--concurrency", "1", "--out", "pilot"
        )
    endpoint = Endpoint(base_url="http://127.0.0.1:9/v1", model=MODEL, key="a-key", temperature=0.3)
    assert given == [(endpoint, False), (endpoint, True)]
    assert [(row.arm, row.through, row.steps) for row in rows(tmp_path)] == [
        ("off", "langchain", 1),
        ("steer", "langchain", 1),
    ]
