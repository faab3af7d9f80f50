"""`reasonblocks memory list | search | forget`: what a person sees of the agents' notes, and removes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reasonblocks.memory import CodebaseMemory
from tests.workbench.cli.conftest import Command

pytest.importorskip("detect_secrets")
TESTS = "The tests run with ./dev test"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with two files, about which findings are stored."""
    (tmp_path / "checkout" / "src").mkdir(parents=True)
    (tmp_path / "checkout" / "src" / "a.py").write_text("a = 1\n")
    (tmp_path / "checkout" / "dev").write_text("#!/bin/sh\n")
    return tmp_path / "checkout"


@pytest.fixture
def ids(tmp_path: Path, checkout: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The ids of the three findings of acme/search, in a store that the commands use."""
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path))
    monkeypatch.chdir(checkout)
    with CodebaseMemory("acme/search", root=checkout) as memory:
        return (
            memory.store(TESTS, "dev", "command"),
            memory.store("The ranking weights are constants in the module", "src/a.py"),
            memory.store("The index is rebuilt at night"),
        )


def listed(command: Command, *more: str) -> set[str]:
    done = command("memory", "list", "acme/search", *more, "--json")
    assert (done.code, done.err) == (0, "")
    return {found["finding_id"] for found in done.objects}


def test_no_command_for_a_person_needs_the_extra_that_storing_needs(ids: tuple[str, ...], tmp_path: Path) -> None:
    run = "from reasonblocks_workbench.cli import main; sys.exit(main(sys.argv[1:]))"
    code = f"import sys; sys.modules['detect_secrets'] = None; {run}"
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, "memory", *argv], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for argv in (
            ("list", "acme/search"),
            ("search", "acme/search", "how do the tests run"),
            ("forget", "acme/search", "--path", "dev"),
        )
    ]
    assert [TESTS in output for output in outputs[:2]] == [True, True]
    assert outputs[2] == "1 finding removed\n"


# ------------------------------------------------------------ list


def test_without_a_codebase_all_codebases_are_listed(ids: tuple[str, ...], command: Command) -> None:
    (found,) = command("memory", "list", "--json").objects
    assert (found["codebase_id"], found["findings"]) == ("acme/search", 3)
    assert found["newest"] in (told := command("memory", "list").out)
    assert "acme/search  3 " in told


def test_findings_of_another_org_are_not_listed(ids: tuple[str, ...], command: Command) -> None:
    assert command("memory", "list", "--org", "other").out == "no codebase\n"
    assert command("memory", "list", "acme/search", "--org", "other").out == "no finding\n"


@pytest.mark.parametrize("given", [("list",), ("list", "acme/search"), ("forget", "acme/search", "--all")])
def test_an_org_is_refused_beside_a_server_whose_key_decides_it(
    given: tuple[str, ...], ids: tuple[str, ...], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REASONBLOCKS_BASE_URL", "http://127.0.0.1:9")
    done = command("memory", *given, "--org", "other")
    assert (done.code, done.out) == (2, "")
    assert "--org" in done.err
    assert "leave it out" in done.err
    assert command("memory", "list", "--org", "other", "--base-url", "").code == 0


def test_findings_are_listed_with_their_ids_files_and_texts(ids: tuple[str, ...], command: Command) -> None:
    done = command("memory", "list", "acme/search")
    assert done.out.startswith("3 findings\n")
    (row,) = [line.split() for line in done.out.splitlines() if ids[0] in line]
    assert row[:3] + row[4:] == [ids[0], "command", "dev", *TESTS.split()]


def test_json_has_the_whole_finding(ids: tuple[str, ...], command: Command) -> None:
    (found,) = [one for one in command("memory", "list", "acme/search", "--json").objects if one["file_path"] == "dev"]
    assert (found["content"], found["finding_type"], len(found["file_hash"])) == (TESTS, "command", 64)


@pytest.mark.parametrize(
    ("path", "expected"), [("src", 1), ("src/a.py", 1), ("./src/", 1), ("sr", 0), ("dev", 2), (".", 3)]
)
def test_a_path_selects_a_file_or_a_folder(
    ids: tuple[str, ...], command: Command, path: str, expected: int, checkout: Path
) -> None:
    with CodebaseMemory("acme/search", root=checkout) as memory:
        memory.store("Its first line names the shell", "dev")
    assert len(listed(command, "--path", path)) == expected
    assert len(listed(command, "--path", str(checkout / path))) == expected


def test_stale_findings_are_listed_for_a_checkout(ids: tuple[str, ...], command: Command, checkout: Path) -> None:
    assert listed(command, "--stale", "--root", str(checkout)) == set()
    (checkout / "src" / "a.py").write_text("a = 2\n")
    (checkout / "dev").unlink()
    assert listed(command, "--stale", "--root", str(checkout)) == {*ids[:2]}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("acme/search", "--stale"), "--stale: needs the folder of the checkout: --root DIR"),
        (("acme/search", "--root", "."), "--root: is only for --stale"),
        (("--path", "src"), "--path: needs a CODEBASE"),
        (("--stale", "--root", "."), "--stale: needs a CODEBASE"),
        (("acme/search", "--stale", "--root", "nowhere"), "nowhere"),
        (("acme/search", "--store", "x.db", "--base-url", "http://127.0.0.1:9"), "base_url"),
    ],
)
def test_options_that_contradict_each_other_are_a_usage_error(
    ids: tuple[str, ...], command: Command, options: tuple[str, ...], reason: str
) -> None:
    done = command("memory", "list", *options)
    assert (done.code, done.out, reason in done.err) == (2, "", True)


def test_another_file_has_its_own_findings(ids: tuple[str, ...], command: Command, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    with CodebaseMemory("acme/search", store=other) as memory:
        (stored,) = memory.store_many([{"content": "Elsewhere"}])
    assert listed(command, "--store", other) == {stored}


def test_a_server_that_does_not_answer_is_a_problem(ids: tuple[str, ...], command: Command) -> None:
    pytest.importorskip("httpx")
    done = command("memory", "list", "--base-url", "http://127.0.0.1:9")
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1)


# ------------------------------------------------------------ search


def test_the_best_finding_is_first(ids: tuple[str, ...], command: Command) -> None:
    found = command("memory", "search", "acme/search", "run", "the", "tests", "--json").objects
    assert (found[0]["finding_id"], found[0]["freshness"]) == (ids[0], "fresh")
    assert 0 < found[0]["score"] <= 1


def test_the_number_of_results_is_limited(ids: tuple[str, ...], command: Command) -> None:
    done = command("memory", "search", "acme/search", "the", "--threshold", "0", "--top-k", "2", "--json")
    assert len(done.objects) == 2


def test_a_finding_about_a_changed_file_is_marked(ids: tuple[str, ...], command: Command, checkout: Path) -> None:
    (checkout / "dev").write_text("#!/bin/bash\n")
    (row,) = [
        line.split()
        for line in command(
            "memory", "search", "acme/search", "run the tests", "--root", str(checkout)
        ).out.splitlines()
        if ids[0] in line
    ]
    assert row[-1] == "stale"


def test_nothing_found_is_said(ids: tuple[str, ...], command: Command) -> None:
    done = command("memory", "search", "acme/search", "zebra", "--threshold", "1")
    assert (done.code, done.out, "--threshold 0" in done.err) == (0, "", True)


def test_a_codebase_without_findings_is_named(ids: tuple[str, ...], command: Command) -> None:
    done = command("memory", "search", "acme/serach", "zebra")
    assert (done.code, done.out) == (0, "")
    assert done.err == "acme/serach has no finding; reasonblocks memory list shows codebases\n"


# ------------------------------------------------------------ forget


def test_a_finding_is_forgotten_by_its_id(ids: tuple[str, ...], command: Command) -> None:
    assert command("memory", "forget", "acme/search", "--id", ids[0], "--id", ids[1]).out == "2 findings removed\n"
    assert listed(command) == {ids[2]}


def test_an_unknown_id_is_a_problem(ids: tuple[str, ...], command: Command) -> None:
    done = command("memory", "forget", "acme/search", "--id", ids[0], "nothing")
    assert (done.code, done.out, done.err) == (1, "1 finding removed\n", "1 id not found\n")


def test_findings_are_forgotten_by_their_files(ids: tuple[str, ...], command: Command) -> None:
    assert command("memory", "forget", "acme/search", "--path", "src", "nowhere", "--json").objects == [{"removed": 1}]
    assert listed(command) == {ids[0], ids[2]}


def test_findings_about_changed_files_are_forgotten(ids: tuple[str, ...], command: Command, checkout: Path) -> None:
    (checkout / "dev").unlink()
    done = command("memory", "forget", "acme/search", "--changed", "--root", str(checkout))
    assert (done.code, done.out) == (0, "1 finding removed\n")
    assert listed(command) == {*ids[1:]}


def test_all_findings_are_forgotten(ids: tuple[str, ...], command: Command) -> None:
    assert command("memory", "forget", "acme/search", "--all").out == "3 findings removed\n"
    assert command("memory", "forget", "acme/search", "--all").out == "0 findings removed\n"
    assert command("memory", "list").out == "no codebase\n"


@pytest.mark.parametrize(
    "options", [(), ("--all", "--changed"), ("--id", "a", "--path", "b"), ("--changed",), ("--all", "--root", ".")]
)
def test_without_exactly_one_selection_nothing_is_forgotten(
    ids: tuple[str, ...], command: Command, options: tuple[str, ...]
) -> None:
    done = command("memory", "forget", "acme/search", *options)
    assert (done.code, done.out) == (2, "")
    assert listed(command) == {*ids}
