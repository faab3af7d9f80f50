"""`reasonblocks keys`, on the database of a server that does not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.running import stored
from tests.workbench.cli.conftest import Command
from tests.workbench.cli.test_terminal import EVIL, obeyed


@pytest.fixture
def keys(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`keys("create", ...)`, on a data folder of the test."""
    monkeypatch.delenv("REASONBLOCKS_DATABASE_URL", raising=False)
    monkeypatch.setenv("REASONBLOCKS_DATA", str(tmp_path))
    return lambda *argv: command("keys", *argv)


def test_stdout_has_only_the_created_key(keys: Command) -> None:
    done = keys("create", "--name", "ci")
    assert done.code == 0
    assert done.out.startswith("rbk_")
    assert done.out.count("\n") == 1
    assert "ingest, evaluate; it is shown only once" in done.err


def test_a_created_key_can_be_found_by_the_server(keys: Command, tmp_path: Path) -> None:
    key = keys("create", "--name", "ci", "--org", "acme", "--scopes", "admin,read", "--project", "p", "--json").objects[
        0
    ]
    with stored(tmp_path) as storage:
        found = storage.keys.find(key["key_id"])
    assert found is not None
    assert (found[0].org_id, found[0].scopes, found[0].project_id) == ("acme", ("read", "admin"), "p")


def test_a_list_shows_no_secret(keys: Command) -> None:
    secret = keys("create", "--name", "ci", "--expires-days", "2").out.strip().split("_", 2)[2]
    listed = [keys("list"), keys("list", "--json")]
    assert ["ci" in done.out for done in listed] == [True, True]
    assert [secret in done.out for done in listed] == [False, False]
    assert "valid until" in listed[0].out


def test_keys_of_other_orgs_are_not_listed(keys: Command) -> None:
    keys("create", "--name", "ci", "--org", "acme")
    done = keys("list")
    assert (done.code, done.out, done.err) == (0, "", "reasonblocks keys: org default has no key\n")


def test_a_revoked_key_is_listed_as_such(keys: Command) -> None:
    key_id = keys("create", "--name", "ci", "--json").objects[0]["key_id"]
    assert keys("revoke", key_id).code == 0
    assert "revoked 20" in keys("list").out


def test_a_whole_key_is_revoked_and_its_secret_is_not_repeated(keys: Command) -> None:
    secret = keys("create", "--name", "ci").out.strip()
    done = [keys("revoke", secret), keys("revoke", secret)]
    assert [one.code for one in done] == [0, 1]
    assert "org default has no valid key" in done[1].err
    assert secret.split("_", 2)[2] not in f"{done[0].out}{done[1].err}"


def test_a_list_makes_no_folder(keys: Command, tmp_path: Path) -> None:
    assert keys("list", "--data", str(tmp_path / "typo")).code == 1
    assert not (tmp_path / "typo").exists()


def test_a_created_key_names_the_data_that_it_is_for(keys: Command, tmp_path: Path) -> None:
    assert f"of org default in {tmp_path}: ingest" in keys("create", "--name", "ci").err


def test_a_key_of_another_org_is_not_revoked(keys: Command) -> None:
    key_id = keys("create", "--name", "ci", "--org", "acme", "--json").objects[0]["key_id"]
    assert keys("revoke", key_id).code == 1
    assert keys("list", "--org", "acme", "--json").objects[0]["revoked"] is None


def test_the_changes_of_a_command_are_in_the_audit(keys: Command, tmp_path: Path) -> None:
    key_id = keys("create", "--name", "ci", "--json").objects[0]["key_id"]
    keys("revoke", key_id)
    with stored(tmp_path) as storage:
        rows = storage.audit.list("default", limit=10, before=None)
    assert [(row.key_id, row.action, row.target) for row in rows] == [
        ("command line", "key.revoke", key_id),
        ("command line", "key.add", f"{key_id} ingest evaluate"),
    ]


@pytest.mark.parametrize(
    ("argv", "code", "reason"),
    [
        (["create", "--name", "ci", "--scopes", "read,fly"], 2, "'fly' is not a scope; valid: ingest, evaluate, read"),
        (["create", "--name", "ci", "--expires-days", "0"], 2, "--expires-days: must be more than 0"),
        (["create"], 2, "Missing option '--name'"),
        (["revoke", "nothing"], 1, "no server has been started with /"),
        (["list", "--data", "/dev/null/data"], 1, "no server has been started with /dev/null/data; --data names"),
        (
            ["list", "--database-url", "sqlite:///no.db"],
            1,
            "no server has been started with sqlite:///no.db; --database",
        ),
        (["create", "--name", "ci", "--data", "/dev/null/data"], 1, "cannot write to /dev/null/data: not a directory"),
        (["list", "--database-url", "mysql://127.0.0.1/x"], 2, "must be sqlite:///PATH or postgresql://..."),
        (["list", "--database-url", "postgresql://127.0.0.1:9/x"], 1, "the database is not available"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(keys: Command, argv: list[str], code: int, reason: str) -> None:
    done = keys(*argv)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert reason in done.err


@pytest.mark.parametrize(
    "argv",
    [["list"], ["list", "--json"], ["revoke", EVIL], ["create", "--name", "x", "--scopes", EVIL], [EVIL]],
    ids=["list", "list json", "revoke", "scopes", "command"],
)
def test_no_command_prints_control_characters(keys: Command, argv: list[str]) -> None:
    keys("create", "--name", f"name{EVIL}", "--project", f"project{EVIL}")
    done = keys(*argv)
    assert (obeyed(done.out), obeyed(done.err)) == ([], [])
    assert [line for line in f"{done.out}\n{done.err}".split("\n") if line.startswith("new line")] == []
