"""Every parameter that is a path takes a `Path`, and a finding keeps its POSIX text."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from reasonblocks.backends.embed import HashEmbedder
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.exceptions import ConfigError
from reasonblocks.memory import CodebaseMemory
from reasonblocks.memory.tools import memory_tools
from reasonblocks.types import Finding


class Named:
    """A path of another class than `Path`."""

    def __fspath__(self) -> str:
        return "src/a.py"


PATHS = [Path("src/a.py"), PurePosixPath("src/./a.py"), PureWindowsPath("src\\a.py"), Named()]
paths = pytest.mark.parametrize("path", PATHS, ids=lambda path: type(path).__name__)


@pytest.fixture
def memory(tmp_path: Path) -> CodebaseMemory:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = 1\n")
    return CodebaseMemory("shop", store=LocalFindings(embedder=HashEmbedder()), root=tmp_path)


def stored(memory: CodebaseMemory) -> list[str]:
    return [finding.file_path for finding in memory.list_all()]


@paths
def test_a_path_is_stored_as_text_also_of_a_mapping_or_a_finding(memory: CodebaseMemory, path: Path) -> None:
    first = memory.store("A fact.", path)
    given = Finding(content="Another.", file_path=path)  # type: ignore[arg-type]  # text for those who read findings
    (again, _) = memory.store_many([{"content": "A fact.", "file_path": path}, given])
    assert (first, again, stored(memory)) == (memory.store("A fact.", "src/a.py"), first, ["src/a.py"] * 2)
    assert memory.list_all()[0].file_hash


@paths
def test_a_path_is_stored_by_the_coroutine_and_by_the_tool(memory: CodebaseMemory, path: Path) -> None:
    asyncio.run(memory.astore("A fact.", path))
    tool = next(one for one in memory_tools(memory) if one.name == "memory_store")
    answer = tool.call({"content": "Another.", "file_path": path})
    assert (answer.is_error, stored(memory)) == (False, ["src/a.py", "src/a.py"])


@paths
def test_a_path_selects_findings(memory: CodebaseMemory, path: Path) -> None:
    memory.store("A fact.", path)
    assert memory.coverage_for([path]) == {os.fspath(path): 1}
    assert memory.invalidate([path]) == 1


def test_a_path_of_bytes_is_refused(memory: CodebaseMemory) -> None:
    class Bytes:
        def __fspath__(self) -> bytes:
            return b"src/a.py"

    with pytest.raises(ConfigError, match="file_path"):
        memory.store("A fact.", Bytes())  # type: ignore[arg-type]
