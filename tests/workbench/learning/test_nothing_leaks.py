"""Runs that are full of secrets are learned from, and no secret is in what is written or given to a distiller."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reasonblocks.exceptions import ExtraMissing
from reasonblocks.masking import detectors
from reasonblocks.masking._secrets import _loaded
from reasonblocks.masking.mask import label
from reasonblocks.types import Pattern
from reasonblocks_workbench.learning import Evidence, learn
from reasonblocks_workbench.learning._acts import act_of
from reasonblocks_workbench.traces import RecordedRun
from tests.whole import WHOLE
from tests.workbench.learning.secrets_in_runs import KINDS, plain, told
from tests.workbench.learning.world import failing, learned, run, step, succeeding

Row = dict[str, Any]


TRIED = dict(list(KINDS.items())[:: 1 if WHOLE else 4])
"""The kinds of secrets that are tried: every fourth one at every commit."""
NO_SECRETS = frozenset("first second bearer basic token digest username".split())


def pieces(marked: str) -> list[str]:
    """The words of what is marked that are long enough to be looked for; ids of runs keep hashes and numbers."""
    words = [word for secret in told(marked) for word in re.findall(r"[^\W_]{5,}", secret)]
    return [word for word in words if word.lower() not in NO_SECRETS and not re.match(r"\d|dead", word)]


def row(action: str, observation: str, thought: str, given: Any, *, error: bool) -> Row:
    return {"thought": thought, "action": action, "action_input": given, "observation": observation, "is_error": error}


def records(at: int, text: str) -> list[Row]:
    """A failed and a successful run of a task: the secret is in thoughts, arguments, errors, keys, and in the ids."""
    tool = f"update_{chr(97 + at // 26)}{chr(97 + at % 26)}"  # a lesson of its own
    bad = [
        row(tool, f"Error: it is refused. {text}", f"I call update now. {text}", {"way": text, text: n}, error=True)
        for n in range(3)
    ]
    cut = row(tool, "Error: refused. " + "word " * 230 + text, "word " * 230 + text, {"n": "x"}, error=True)
    traced = row("run", f"Traceback (most recent call last):\n{text}\nValueError: {text}", text, text, error=True)
    look = row("look", "a reservation", "I look first.", {"x": "y"}, error=False)
    find = row("find", "flights with seats", "I look for seats.", {"day": text}, error=False)
    done = row(tool, "updated", "I update it.", {"way": "other"}, error=False)
    task = f"task-{at}"
    head = {"source": "agent", "task": f"Do it. {text}", "task_key": task}
    return [
        {**head, "run_id": f"bad {at} {text}", "outcome": "failure", "steps": [look, *bad]},
        {**head, "run_id": f"bad-cut-{at}", "outcome": "failure", "steps": [look, cut, cut, cut]},
        {**head, "run_id": f"bad-traced-{at}", "outcome": "failure", "steps": [look, traced, traced]},
        {**head, "run_id": f"good {at} {text}", "outcome": "success", "steps": [look, find, done]},
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return everything that `reasonblocks learn` writes and prints for runs with every secret."""
    folder = tmp_path_factory.mktemp("learn")
    rows = [one for at, marked in enumerate(TRIED.values()) for one in records(at, plain(marked))]
    runs, out = folder / "runs.jsonl", folder / "proposals.jsonl"
    runs.write_text("".join(f"{json.dumps(one)}\n" for one in rows), encoding="utf-8")
    command = [sys.executable, "-m", "reasonblocks", "learn", str(runs), "--out", str(out), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    text = out.read_text(encoding="utf-8")
    assert text.count("\n") >= len(TRIED)
    return f"{text}\n{done.stdout}\n{json.loads(json.dumps(text))}"


@pytest.mark.parametrize("kind", [kind for kind, marked in TRIED.items() if pieces(marked)])
def test_no_secret_is_in_what_learn_writes(kind: str, written: str) -> None:
    escaped = written.encode("ascii", "backslashreplace").decode()
    found = [word for word in pieces(KINDS[kind]) if re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", written)]
    assert found == []
    assert not [word for word in pieces(KINDS[kind]) if not word.isascii() and json.dumps(word)[1:-1] in escaped]


@pytest.mark.parametrize("kind", TRIED)
def test_a_distiller_of_one_s_own_is_given_no_secret(kind: str) -> None:
    given: list[Evidence] = []

    def distil(evidence: Evidence) -> Pattern | None:
        given.append(evidence)
        return None

    text = plain(KINDS[kind])
    tries = [step("update", f"Error: it failed. {text}", f"I update it. {text}", way=text) for _ in range(3)]
    learned([run(f"bad {text}", "failure", *tries), succeeding()], distil=distil)
    assert given
    assert not [word for word in pieces(KINDS[kind]) if word in str(given)]


def test_a_secret_that_ends_where_a_text_is_cut_leaves_no_half() -> None:
    for before in range(1_150, 1_215, 1 if WHOLE else 4):
        text = "w " * (before // 2) + "x" * (before % 2) + " password is Zebracrossing"
        (lesson,) = learned(
            [run("bad", "failure", *[step("update", "Error: no", text)] * 3), succeeding()], distil=kept
        )
        assert "Zeb" not in str(lesson.as_json())


def kept(evidence: Evidence) -> Pattern | None:
    """A lesson that holds all that a distiller is given."""
    fields = {"observation": str(evidence), "recommended_action": "x", "task_context_embedding_text": evidence.texts[0]}
    return (
        Pattern(id="p", tier="e1", fields=dict(fields), org_id="acme", exemplars=evidence.texts)
        if evidence.tier == "e1"
        else None
    )


def test_a_key_of_an_argument_and_a_called_tool_are_masked() -> None:
    act = act_of(step("ask zoe@example.com", "ok", **{"zoe@example.com": "x", "day": "y"}), {}, frozenset())
    assert (act.tool, [argument.name for argument in act.arguments]) == ("#", ["day", "#"])


def test_the_value_of_an_argument_that_names_a_secret_is_never_named() -> None:
    act = act_of(step("login", "ok", password="hunter", mode="fast"), {}, frozenset())
    assert [argument.word for argument in act.arguments] == ["fast", ""]


def test_a_passphrase_before_a_command_is_not_taken_for_a_program() -> None:
    act = act_of(step("bash", "ok", command='PGPASSWORD="correct horse battery" psql shop'), {}, frozenset())
    assert act.tool == "bash psql"


def test_the_ids_of_two_runs_that_look_alike_once_they_are_masked_name_two_lessons() -> None:
    runs = [
        failing("of zoe@example.com"),
        failing("of ann@example.com", task="t2"),
        succeeding(),
        succeeding(task="t2"),
    ]
    runs[1] = run(runs[1].run_id, "failure", *[step("move", "Error: no way", "I move it elsewhere.")] * 3, task="t2")
    lessons = learned(runs)
    assert {lesson.pattern.source_trace_id for lesson in lessons} == {"of #"}
    assert len({lesson.pattern.id for lesson in lessons}) == len(lessons) == 2


def test_without_the_detector_learning_refuses_before_it_reads_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    without_detector(monkeypatch)
    read: list[str] = []

    def runs() -> Iterator[RecordedRun]:
        read.append("a run")
        yield failing()

    with pytest.raises(ExtraMissing, match=r"^learning needs detect-secrets: pip install 'detect-secrets>=1.5'$"):
        learn(runs(), rb=None)  # type: ignore[arg-type]
    assert read == []
    _loaded.cache_clear()


def test_without_the_detector_the_command_says_how_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from reasonblocks_workbench.cli import main

    without_detector(monkeypatch)
    runs = tmp_path / "runs.jsonl"
    runs.write_text("".join(f"{json.dumps(one)}\n" for one in records(0, "x")), encoding="utf-8")
    assert main(["learn", str(runs), "--out", str(tmp_path / "out.jsonl")]) == 1
    assert capsys.readouterr().err == "reasonblocks: learning needs detect-secrets: pip install 'detect-secrets>=1.5'\n"
    assert not (tmp_path / "out.jsonl").exists()
    _loaded.cache_clear()


def test_proposals_are_listed_and_accepted_without_the_detector(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from reasonblocks_workbench.cli import main

    without_detector(monkeypatch)
    assert main(["learn", "--out", str(tmp_path / "out.jsonl")]) == 0
    assert "nothing is proposed" in capsys.readouterr().out
    _loaded.cache_clear()


def without_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    _loaded.cache_clear()
    for name in [*filter(re.compile(r"detect_secrets\b").match, sys.modules), "detect_secrets"]:
        monkeypatch.setitem(sys.modules, name, None)


def test_no_detector_asks_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    from reasonblocks.masking.mask import hidden

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refused)
    assert [hidden(plain(KINDS[kind])) for kind in ("GitHub", "Slack", "AWS", "Stripe", "SendGrid")]


@pytest.mark.parametrize("word", ["curl -u ", "mysql ", "://", "docker login "])
def test_a_name_or_an_error_of_any_length_takes_no_time(word: str) -> None:
    detectors()
    started = time.monotonic()
    label(word * 20_000)
    output = f"Error\nTraceback (most recent call last):\nValueError: {word * 20_000}"
    act_of(step("bash", output), {}, frozenset())
    assert time.monotonic() - started < 5.0
