"""`reasonblocks learn`: proposals are made, listed, reviewed, and stored only when they are accepted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reasonblocks.backends.local_store import LocalStore
from tests.workbench.cli.conftest import Command, Write

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "dev" / "tau_airline.jsonl.gz"


def step(action: str, observation: str, **given: object) -> dict[str, object]:
    error = observation.startswith("Error")
    return {"thought": f"I call {action}.", "action": action, "action_input": given, "observation": observation,
            "is_error": error}  # fmt: skip


def record(run_id: str, outcome: str | None, *steps: dict[str, object], task: str = "t1") -> dict[str, object]:
    return {"run_id": run_id, "source": "s", "outcome": outcome, "task": task, "task_key": task, "steps": [*steps]}


def bad(tool: str = "update", task: str = "t1") -> dict[str, object]:
    tries = [step(tool, "Error: not enough seats on it", flight=f"H{n}") for n in range(3)]
    return record(f"bad-{task}", "failure", step("look", "a reservation"), *tries, task=task)


def good(tool: str = "update", task: str = "t1") -> dict[str, object]:
    steps = (step("look", "a reservation"), step("find", "flights with seats"), step(tool, "updated", flight="H9"))
    return record(f"good-{task}", "success", *steps, task=task)


@pytest.fixture(autouse=True)
def home(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def two(write: Write) -> str:
    """Runs that teach two lessons."""
    return write("a.jsonl", bad(), good(), bad("move", "t2"), good("move", "t2"))


def stored(home: Path, org: str = "default") -> list[str]:
    with LocalStore(home / "patterns.db") as store:
        return [pattern.id for pattern in store.list(org)] if (home / "patterns.db").exists() else []


def test_proposals_are_listed_by_number(command: Command, two: str) -> None:
    done = command("learn", two)
    assert done.code == 0
    assert "1. e1 of default" in done.out
    assert "recommended_action: The run of the same task that succeeded first called `find`" in done.out
    assert done.out.endswith("2 pending\n")


def test_nothing_is_stored_before_it_is_accepted(command: Command, two: str, home: Path) -> None:
    command("learn", two)
    assert not (home / "patterns.db").exists()


def test_without_runs_the_pending_ones_are_listed(command: Command, two: str) -> None:
    first = command("learn", two).out
    assert command("learn").out == first


def test_without_runs_and_proposals_there_is_nothing(command: Command) -> None:
    assert command("learn").out == "nothing is proposed\n"


def test_accepted_proposals_are_stored_and_no_longer_pending(command: Command, two: str, home: Path) -> None:
    first, second = command("learn", two, "--json").objects
    assert command("learn", "--accept", "2").out == "1 accepted, 0 refused, 1 pending\n"
    assert stored(home) == [second["pattern"]["id"]]
    assert [one["pattern"]["id"] for one in command("learn", "--json").objects] == [first["pattern"]["id"]]


def test_all_can_be_accepted_at_once(command: Command, two: str, home: Path) -> None:
    assert command("learn", two, "--accept", "all").out == "2 accepted, 0 refused, 0 pending\n"
    assert len(stored(home)) == 2


def test_what_was_accepted_is_not_proposed_again(command: Command, two: str) -> None:
    command("learn", two, "--accept", "all")
    assert command("learn", two).out == "nothing is proposed\n"


def test_a_number_that_was_not_listed_is_refused_and_nothing_is_stored(command: Command, two: str, home: Path) -> None:
    command("learn", two)
    done = command("learn", "--accept", "1,3")
    assert (done.code, stored(home)) == (2, [])
    assert "--accept=3: is the number of no pending proposal (there are: 1, 2)" in done.err


@pytest.mark.parametrize("wrong", ["0", "one", "1,", "-1"])
def test_what_is_no_number_is_a_usage_error(command: Command, wrong: str) -> None:
    assert command("learn", f"--accept={wrong}").code == 2


def says(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """The reader's answers; after them the input ends."""
    answers: Iterator[str] = iter(lines)

    def answer(_: str = "") -> str:
        try:
            return next(answers)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", answer)


def test_a_review_accepts_and_refuses(command: Command, two: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command("learn", two)
    says(monkeypatch, "what?", "y", "n")
    assert command("learn", "--review").out.endswith("1 accepted, 1 refused, 0 pending\n")
    assert len(stored(home)) == 1


def test_a_refused_proposal_does_not_come_back(command: Command, two: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command("learn", two)
    says(monkeypatch, "n", "n")
    command("learn", "--review")
    assert command("learn", two).out == "nothing is proposed\n"


@pytest.mark.parametrize("lines", [("q",), ()])
def test_who_has_enough_leaves_the_rest_pending(
    command: Command, two: str, home: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...]
) -> None:
    command("learn", two)
    says(monkeypatch, *lines)
    assert command("learn", "--review").out.endswith("0 accepted, 0 refused, 2 pending\n")
    assert stored(home) == []


def test_an_edited_proposal_is_stored_as_it_was_edited(
    command: Command, two: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("learn", two)
    says(monkeypatch, "e", "", "Search for seats first.", "y", "q")
    command("learn", "--review")
    (kept,) = stored(home)
    with LocalStore(home / "patterns.db") as store:
        pattern = store.get(kept)
    assert pattern is not None
    assert pattern.fields["recommended_action"] == "Search for seats first."
    assert "failed 2 times" in str(pattern.fields["observation"])


def test_an_edit_that_is_left_stores_nothing(
    command: Command, two: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("learn", two)
    says(monkeypatch, "e", "", "Half a sent")
    assert command("learn", "--review").out.endswith("0 accepted, 0 refused, 2 pending\n")
    assert stored(home) == []


def test_the_org_owns_the_lessons(command: Command, two: str, home: Path) -> None:
    command("learn", two, "--org", "acme", "--accept", "all")
    assert len(stored(home, "acme")) == 2
    with LocalStore(home / "patterns.db") as store:
        assert all((found := store.get(one)) is not None and found.org_id == "acme" for one in stored(home, "acme"))


@pytest.fixture
def orgs(command: Command, write: Write) -> dict[int, str]:
    """The orgs of three pending proposals, by their numbers."""
    command("learn", write("a.jsonl", bad(), good()), "--org", "acme")
    command("learn", write("b.jsonl", bad("move", "t2"), good("move", "t2")), "--org", "a")
    found = command("learn", write("c.jsonl", bad("seat", "t3"), good("seat", "t3")), "--json").objects
    return {one["number"]: one["pattern"]["org_id"] for one in found}


def test_only_the_proposals_of_exactly_this_org_are_listed(command: Command, orgs: dict[int, str]) -> None:
    assert orgs == {1: "acme", 2: "a", 3: "default"}
    for number, org in orgs.items():
        (listed,) = command("learn", "--org", org, "--json").objects
        assert (listed["number"], listed["pattern"]["org_id"]) == (number, org)
    assert command("learn", "--org", "acm").out == "nothing is proposed\n"


def test_only_the_proposals_of_exactly_this_org_are_accepted(
    command: Command, orgs: dict[int, str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = command("learn", "--org", "a", "--accept", "1")
    assert (refused.code, stored(home, "acme")) == (2, [])
    assert "is the number of no pending proposal of the org 'a' (there are: 2)" in refused.err
    assert command("learn", "--org", "a", "--accept", "all").out == "1 accepted, 0 refused, 0 pending\n"
    assert [len(stored(home, org)) for org in ("acme", "a", "default")] == [0, 1, 0]
    says(monkeypatch, "n", "n")
    assert command("learn", "--org", "acme", "--review").out.endswith("0 accepted, 1 refused, 0 pending\n")
    assert [one["pattern"]["org_id"] for one in command("learn", "--json").objects] == ["default"]


def test_store_and_proposals_can_be_elsewhere(command: Command, two: str, home: Path, tmp_path: Path) -> None:
    out, store = tmp_path / "p.jsonl", tmp_path / "s.db"
    command("learn", two, "--out", str(out), "--store", str(store), "--accept", "all")
    assert out.exists()
    assert store.exists()
    assert not home.exists()


def test_what_is_malformed_is_said_and_the_rest_is_learned_from(command: Command, write: Write) -> None:
    path = write("a.jsonl", bad(), "{", good(), {"steps": 3})
    done = command("learn", path)
    assert done.code == 0
    assert done.out.endswith("1 pending\n")
    assert [line.split(":")[1] for line in done.err.splitlines()] == ["2", "4"]


def test_a_file_without_runs_is_a_problem(command: Command, write: Write) -> None:
    done = command("learn", write("a.jsonl", "{"))
    assert done.code == 1
    assert done.err.endswith("reasonblocks learn: no run could be read\n")


def test_runs_without_an_outcome_are_counted(command: Command, write: Write) -> None:
    done = command("learn", write("a.jsonl", record("r", None, step("look", "a page"))))
    assert (done.code, done.out) == (0, "nothing is proposed\n")
    assert "left out for an unknown outcome: 1" in done.err


@pytest.mark.skipif(not CORPUS.exists(), reason="the recorded runs are not beside the checkout")
def test_recorded_runs_teach_something_that_can_be_stored(command: Command, home: Path) -> None:
    assert command("learn", str(CORPUS), "--accept", "all").code == 0
    assert stored(home)
