"""The file of proposals: read, renewed, and what is wrong in it said with its place."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from reasonblocks.exceptions import ConfigError
from reasonblocks_workbench.learning import Proposal, read_proposals, together, write_proposals
from tests.workbench.learning.world import failing, learned, succeeding


def lesson() -> Proposal:
    (found,) = learned([failing(), succeeding()])
    return found


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "proposals.jsonl"
    write_proposals(path, [lesson()])
    assert read_proposals(path) == (lesson(),)


def test_any_text_of_a_run_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "proposals.jsonl"
    text = "one line\u2028to some \x85 readers, \r\n half a pair "
    one = replace(lesson(), pattern=replace(lesson().pattern, exemplars=(f"{text}\ud800",)))
    write_proposals(path, [one])
    (read,) = read_proposals(path)
    assert read.pattern.exemplars == (f"{text}?",)


def test_no_file_holds_no_proposal(tmp_path: Path) -> None:
    assert read_proposals(tmp_path / "none.jsonl") == ()


@pytest.mark.parametrize("line", ["{", "[]", '{"pattern": 3}', '{"pattern": {"id": "a", "tier": "e9"}}', '{"a": 1}'])
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "proposals.jsonl"
    path.write_text(f"{json.dumps(lesson().as_json())}\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"proposals\.jsonl:2"):
        read_proposals(path)


def test_a_pending_proposal_is_renewed() -> None:
    newer = replace(lesson(), runs=7)
    assert together([lesson()], [newer]) == (newer,)


@pytest.mark.parametrize("status", ["accepted", "rejected"])
def test_what_was_decided_is_not_proposed_again(status: str) -> None:
    decided = replace(lesson(), status=status)  # type: ignore[arg-type] # a parameter is no literal
    assert together([decided], [lesson()]) == (decided,)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")
def test_a_new_file_and_its_folders_are_this_users_own_and_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    path, before = tmp_path / "new" / "newer" / "proposals.jsonl", os.umask(0o022)
    try:
        write_proposals(path, [lesson()])
        made = [one.stat().st_mode & 0o777 for one in (path.parent.parent, path.parent, path)]
        path.chmod(0o640)
        write_proposals(path, [lesson()])
        assert (made, path.stat().st_mode & 0o777) == ([0o700, 0o700, 0o600], 0o640)
    finally:
        os.umask(before)
