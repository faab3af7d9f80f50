"""Files with texts of runs: new ones are readable by this user only, and existing ones keep their modes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from reasonblocks import JsonlSink, LocalStore, SQLiteMonitorSink
from reasonblocks.backends.embed import HashEmbedder
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.backends.profiles import ProfileFile
from reasonblocks.events import RunFinish
from reasonblocks.types import Codebase, Finding, Pattern
from reasonblocks.util.files import write_whole

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")
RULE = Pattern(id="own-rule", tier="e3", fields={"instruction": "Say less."})
NOTE = Finding(content="a note", finding_id="x", created_at="2026-01-01T00:00:00+00:00")
END = RunFinish(run_id="a", timestamp=1.0, outcome="success")


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    try:
        yield
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def patterns(path: Path, stack: ExitStack) -> None:
    stack.enter_context(LocalStore(path, patterns=[RULE], embedder=HashEmbedder()))


def findings(path: Path, stack: ExitStack) -> None:
    stack.enter_context(LocalFindings(path, embedder=HashEmbedder())).put(
        Codebase(org_id="acme", codebase_id="shop"), [NOTE]
    )


def profiles(path: Path, stack: ExitStack) -> None:
    ProfileFile(path).add(("acme", "agent", "coding"), "run", {})


def runs(path: Path, stack: ExitStack) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stack.enter_context(closing(SQLiteMonitorSink(path))).emit(END)


def lines(path: Path, stack: ExitStack) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stack.enter_context(closing(JsonlSink(path))).emit(END)


Write = Callable[[Path, ExitStack], None]
WRITERS: list[Write] = [patterns, findings, profiles, runs, lines]
writers = pytest.mark.parametrize("write", WRITERS)


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@writers
def test_a_file_that_we_create_and_what_sqlite_puts_beside_it_are_this_users_own(tmp_path: Path, write: Write) -> None:
    with ExitStack() as stack:
        write(tmp_path / "a file", stack)
        assert modes(tmp_path) == {0o600}


@writers
def test_an_existing_file_keeps_its_mode(tmp_path: Path, write: Write) -> None:
    (tmp_path / "a file").touch(0o640)
    with ExitStack() as stack:
        write(tmp_path / "a file", stack)
        assert modes(tmp_path) == {0o640}


@writers
def test_the_target_of_a_link_that_is_created_is_this_users_own(tmp_path: Path, write: Write) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a file").symlink_to(tmp_path / "there" / "a file")
    with ExitStack() as stack:
        write(tmp_path / "here" / "a file", stack)
        assert modes(tmp_path / "there") == {0o600}


@pytest.mark.parametrize("write", [patterns, findings, profiles])
def test_folders_that_we_create_are_this_users_own_and_others_keep_their_modes(tmp_path: Path, write: Write) -> None:
    (tmp_path / "there").mkdir(0o755)
    with ExitStack() as stack:
        write(tmp_path / "there" / "new" / "newer" / "a file", stack)
        assert (modes(tmp_path), modes(tmp_path / "there"), modes(tmp_path / "there" / "new")) == (
            {0o755}, {0o700}, {0o700},
        )  # fmt: skip


def test_a_copy_of_profiles_is_this_users_own(tmp_path: Path) -> None:
    profiles(tmp_path / "a file", ExitStack())
    ProfileFile(tmp_path / "a file").copy_to(str(tmp_path / "copy"), [("acme", "agent", "coding")])
    assert modes(tmp_path) == {0o600}


def test_a_private_file_is_never_readable_while_it_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen, change = tmp_path / "report.html", list[int](), os.chmod
    path.touch(0o600)

    def looks(name: str, mode: int) -> None:
        seen.extend(modes(tmp_path))
        change(name, mode)

    monkeypatch.setattr(os, "chmod", looks)
    write_whole(path, "text")
    assert (set(seen), path.read_text()) == ({0o600}, "text")


def test_a_new_file_of_write_whole_has_the_mode_that_the_user_asks_for(tmp_path: Path) -> None:
    write_whole(tmp_path / "report.html", "text")
    assert modes(tmp_path) == {0o644}
