"""What cosines are worth is fitted to recorded runs: the command, the file that it writes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy
import pytest

from reasonblocks.backends.embed import CallableEmbedder, HashEmbedder, StaticEmbedder
from reasonblocks.backends.embed.curves import UNFITTED
from reasonblocks.exceptions import ConfigError
from reasonblocks_workbench.calibration.similarity import FITTED, Fit, Texts, fit_curves
from reasonblocks_workbench.cli import _calibrate
from reasonblocks_workbench.cli._main import command_of
from reasonblocks_workbench.traces import RecordedRun, read_runs

SUBJECTS = (
    "parser token grammar syntax lexer tree node",
    "flight booking seat airport luggage passenger gate",
    "database index query table migration schema column",
    "recipe oven flour butter sugar bake dough",
    "orbit rocket engine launch payload booster thrust",
    "contract clause lawyer court ruling appeal judge",
)
SPREAD = "check look read find open write run change compare again first other same next wrong right".split()


def blind(text: str) -> list[float]:
    return [1.0, 0.0]


def thought(subject: str, chance: Random) -> str:
    return " ".join(chance.choices(subject.split(), k=4) + chance.choices(SPREAD, k=8))


def runs(folder: Path, *, sources: bool = True, tasks: int = 12, length: int = 12) -> str:
    """A file of recorded runs, each task about a subject."""
    chance, lines = Random(4), []
    for task in range(tasks):
        subject = SUBJECTS[task % len(SUBJECTS)]
        steps = [{"thought": thought(subject, chance), "action": "look", "observation": "ok"} for _ in range(length)]
        source = {"source": f"agent {task % len(SUBJECTS)}"} if sources else {}
        lines += [json.dumps({"run_id": f"{task}", "task": subject, "task_key": f"{task}", "steps": steps, **source})]
    file = folder / "runs.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def read(file: str) -> Iterator[RecordedRun]:
    for run in read_runs(file):
        assert isinstance(run, RecordedRun)
        yield run


def texts(file: str) -> Texts:
    found = Texts()
    for run in read(file):
        found.add(run)
    return found


def command(*argv: str) -> int:
    code: int = command_of(_calibrate.calibrate_curves, "calibrate").main(list(argv), standalone_mode=False)
    return code


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    return runs(tmp_path_factory.mktemp("runs"), tasks=60)


@pytest.fixture(scope="module")
def fitted(file: str) -> Fit:
    return fit_curves(HashEmbedder(), texts(file))


@pytest.mark.parametrize("embedder", [StaticEmbedder(), HashEmbedder()], ids=["static", "hash"])
def test_unrelated_texts_reach_a_fitted_similarity_as_rarely_as_wanted(file: str, embedder: Any) -> None:
    fit = fit_curves(embedder, texts(file))
    over = {(tier, at): share for tier, held in fit.reached.items() for at, share in held.items()}
    assert [key for key, share in over.items() if share > 1.5 * FITTED[key[1]]] == []


def test_a_fit_is_the_same_each_time(file: str, fitted: Fit) -> None:
    assert fit_curves(HashEmbedder(), texts(file)) == fitted


def test_where_all_runs_are_of_one_source_tasks_are_compared(tmp_path: Path) -> None:
    fit = fit_curves(HashEmbedder(), texts(runs(tmp_path, sources=False, tasks=60)))
    assert fit.groups == {"e1": 60, "e2": 60}


def test_sources_that_share_a_task_are_one_kind(tmp_path: Path) -> None:
    file = Path(runs(tmp_path, tasks=60))
    file.write_text(file.read_text().replace('"task_key": "1"', '"task_key": "0"'))
    assert fit_curves(HashEmbedder(), texts(str(file))).groups == {"e1": 5, "e2": 5}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tasks": 1}, "at least 2 tasks"),
        ({"tasks": 12}, "at least 200 are needed"),
        ({"tasks": 60, "length": 2}, "at least 2 tasks"),
    ],
)
def test_too_little_text_is_refused_with_the_reason(given: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        fit_curves(HashEmbedder(), texts(runs(tmp_path, **given)))


def test_an_embedder_that_tells_nothing_apart_is_refused(file: str) -> None:
    with pytest.raises(ConfigError, match="nothing can be told by this embedder"):
        fit_curves(CallableEmbedder(blind, id="blind", dim=2, curves=UNFITTED), texts(file))


def test_texts_without_a_word_do_not_stop_a_fit(file: str) -> None:
    def zeros(text: str) -> Any:
        return numpy.zeros(2)

    curve = fit_curves(CallableEmbedder(zeros, id="zeros", dim=2, curves=UNFITTED), texts(file)).curves.e1
    assert curve(0.0) < min(FITTED)


# --- the command


def test_the_command_writes_what_an_embedder_reads(file: str, fitted: Fit, tmp_path: Path) -> None:
    out = tmp_path / "curves.toml"
    assert command(file, "--embedder", f"{__name__}:HashEmbedder", "--out", str(out)) == 0
    embedder = CallableEmbedder(blind, id=HashEmbedder.id, dim=2, curves=out)
    assert embedder.curves == fitted.curves


def test_the_file_begins_with_what_it_rests_on(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    command(file, "--embedder", "hash", "--out", "-")
    head = capsys.readouterr().out.splitlines()
    assert head[0] == "# Made by `reasonblocks patterns calibrate`: 60 runs."
    assert head[1].startswith("# e1: 420 texts of 6 kinds or tasks; in draws of their own ")


def test_the_figures_can_be_had_as_json(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "curves.toml"
    command(file, "--embedder", "static", "--json", "--out", str(out))
    told = json.loads(capsys.readouterr().out)
    assert (told["embedder"], told["runs"], set(told["e2"])) == (
        StaticEmbedder.id,
        60,
        {"points", "texts", "groups", "reached"},
    )


def test_without_a_run_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "curves.toml"
    assert (command(str(tmp_path / "none.jsonl"), "--out", str(out)), out.exists()) == (1, False)
    assert "no run could be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("statics", "must be static, hash"),
        ("openai:m", "must name the server"),
        ("openai:m@nowhere", "base_url"),
        ("json:nothing", "cannot be imported"),
        ("json:loads", "is not an embedder"),
    ],
)
def test_an_embedder_that_there_is_not_is_refused(which: str, said: str, file: str) -> None:
    with pytest.raises(ConfigError, match=said):
        command(file, "--embedder", which, "--out", "-")


def test_json_and_the_file_do_not_both_go_to_stdout(file: str) -> None:
    with pytest.raises(ConfigError, match="--out"):
        command(file, "--json", "--out", "-")
