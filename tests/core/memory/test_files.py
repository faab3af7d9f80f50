"""Freshness: a finding is stale when its file has changed or is gone, and never because of another file."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from reasonblocks import CodebaseMemory
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.findings import Checkout, Comparison, _files
from reasonblocks.types import Finding, Freshness

TEXT = "one\ntwo\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / ".git").mkdir()
    (folder / "a.py").write_bytes(TEXT.encode())
    return folder


def about(checkout: Checkout, path: str) -> Finding:
    file_hash, git_blob = checkout.state(path)
    return Finding(content="x", file_path=path, file_hash=file_hash, git_blob=git_blob)


def freshness(root: Path, finding: Finding) -> Freshness:
    return Comparison(Checkout(root)).freshness(finding)


def test_a_file_is_fresh_until_its_bytes_change(root: Path) -> None:
    finding = about(Checkout(root), "a.py")
    assert freshness(root, finding) == "fresh"
    (root / "a.py").write_bytes(b"one\ntwo")
    assert freshness(root, finding) == "stale"
    (root / "a.py").write_bytes(TEXT.encode())
    assert freshness(root, finding) == "fresh"


def test_an_empty_file_is_a_file(root: Path) -> None:
    (root / "empty").touch()
    finding = about(Checkout(root), "empty")
    assert freshness(root, finding) == "fresh"
    (root / "empty").write_bytes(b"x")
    assert freshness(root, finding) == "stale"


def test_a_missing_file_is_gone_from_a_given_folder_only(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = about(Checkout(root), "a.py")
    (root / "a.py").rename(root / "b.py")
    assert freshness(root, finding) == "stale"
    monkeypatch.chdir(root)
    assert Comparison(Checkout()).freshness(finding) == "unknown"


def test_in_the_current_folder_a_changed_file_is_stale(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = about(Checkout(root), "a.py")
    (root / "a.py").write_bytes(b"changed")
    monkeypatch.chdir(root)
    assert Comparison(Checkout()).freshness(finding) == "stale"


@pytest.mark.parametrize("stored", [b"one\ntwo\n", b"one\r\ntwo\r\n"])
def test_other_line_endings_are_no_change_in_a_git_checkout(root: Path, stored: bytes) -> None:
    (root / "a.py").write_bytes(stored)
    finding = about(Checkout(root), "a.py")
    for data in (b"one\ntwo\n", b"one\r\ntwo\r\n"):
        (root / "a.py").write_bytes(data)
        assert freshness(root, finding) == "fresh"
    (root / "a.py").write_bytes(b"one\n two\n")
    assert freshness(root, finding) == "stale"


def test_outside_of_git_there_is_no_blob_and_line_endings_count(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(TEXT.encode())
    finding = about(Checkout(tmp_path), "a.py")
    assert (finding.git_blob, len(finding.file_hash)) == ("", 64)
    (tmp_path / "a.py").write_bytes(TEXT.replace("\n", "\r\n").encode())
    assert freshness(tmp_path, finding) == "stale"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("data", [b"", b"one\ntwo\n", b"\x00\xff\r\n", b"x" * 100_000])
def test_the_blob_is_the_one_of_git(root: Path, data: bytes) -> None:
    (root / "a.py").write_bytes(data)
    command = ["git", "hash-object", "--no-filters", "a.py"]
    told = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.strip()
    assert Checkout(root).state("a.py")[1] == told


def test_a_worktree_whose_git_entry_is_a_file_is_a_checkout_and_so_is_a_folder_in_it(root: Path) -> None:
    (root / ".git").rmdir()
    (root / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    (root / "src").mkdir()
    (root / "src" / "b.py").touch()
    assert Checkout(root / "src").state("b.py")[1]


def test_a_path_below_the_root_becomes_relative_and_others_stay(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    for given in (root, tmp_path / "link"):
        checkout = Checkout(given)
        assert checkout.relative(str(root / "a.py")) == "a.py" or given != root
        assert checkout.relative(str(given / "src" / "b.py")) == "src/b.py"
        assert checkout.relative(str(given)) == ""
        for other in ("a.py", "../a.py", f"{root}2/a.py", "/etc/hosts", f"{given}/../x"):
            assert checkout.relative(other) == other
    assert Checkout(tmp_path / "link").relative(str(root / "a.py")) == "a.py"


@pytest.mark.parametrize("path", ["../secret", "inside/../../secret", "out", "out_folder/secret"])
def test_what_lies_outside_the_root_is_never_read(root: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (root / "inside").mkdir()
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "out_folder").symlink_to(tmp_path)
    checkout = Checkout(root)
    for given in (path, str(tmp_path / "secret")):
        assert (checkout.read(given), checkout.state(given)) == ("unknown", ("", ""))
        assert Comparison(checkout).freshness(Finding(content="x", file_path=given, file_hash="0" * 64)) == "unknown"


def test_a_link_within_the_root_is_followed(root: Path) -> None:
    (root / "link.py").symlink_to("a.py")
    finding = about(Checkout(root), "link.py")
    (root / "a.py").write_bytes(b"changed")
    assert freshness(root, finding) == "stale"


def test_a_file_that_became_a_folder_or_a_pipe_is_gone_and_nothing_hangs(root: Path) -> None:
    finding = about(Checkout(root), "a.py")
    (root / "a.py").unlink()
    (root / "a.py").mkdir()
    assert freshness(root, finding) == "stale"
    (root / "a.py").rmdir()
    os.mkfifo(root / "a.py")
    assert (freshness(root, finding), Checkout(root).state("a.py")) == ("stale", ("", ""))


def test_a_loop_of_links_and_an_impossible_name_are_unknown(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    for path in ("loop", "loop/a.py", "a" * 300, "nul\x00", "\ud800"):
        assert freshness(root, Finding(content="x", file_path=path, file_hash="0" * 64)) in ("unknown", "stale")
        assert Checkout(root).state(path) == ("", "")


def test_a_file_over_the_limit_is_not_hashed_and_one_that_grew_has_changed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "FILE_BYTES", len(TEXT))
    finding = about(Checkout(root), "a.py")
    assert freshness(root, finding) == "fresh"
    (root / "a.py").write_bytes(TEXT.encode() + b"x")
    assert (freshness(root, finding), Checkout(root).state("a.py")) == ("stale", ("", ""))


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_unknown(root: Path) -> None:
    finding = about(Checkout(root), "a.py")
    (root / "a.py").chmod(0)
    assert freshness(root, finding) == "unknown"


def test_each_file_is_read_once_for_all_its_findings(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = Checkout(root)
    finding, compared = about(checkout, "a.py"), Comparison(checkout)
    assert compared.freshness(finding) == "fresh"
    (root / "a.py").unlink()
    assert [compared.freshness(finding) for _ in range(3)] == ["fresh"] * 3


def test_a_removed_current_folder_is_no_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    checkout = Checkout()
    assert (checkout.relative("a.py"), checkout.state("a.py")) == ("a.py", ("", ""))


def test_only_changed_files_are_invalidated_and_of_the_given_folder(root: Path, tmp_path: Path) -> None:
    (root / "b.py").write_bytes(b"b")
    memory = CodebaseMemory("acme", store=LocalFindings(), root=root)
    memory.store_many([{"content": f"Note {path}", "file_path": path} for path in ("a.py", "b.py", "none.py", "")])
    assert (memory.stale(), memory.invalidate_changed()) == ((), 0)
    copy = shutil.copytree(root, tmp_path / "copy")
    (copy / "b.py").write_bytes(b"changed")
    assert [found.file_path for found in memory.stale(copy)] == ["b.py"]
    assert (memory.stale(), memory.invalidate_changed(copy)) == ((), 1)
    assert [found.file_path for found in memory.list_all()] == ["", "a.py", "none.py"]
