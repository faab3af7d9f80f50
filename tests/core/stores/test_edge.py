"""What is particular to an `EdgeStore`: its folder, who else has it open, and threads."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reasonblocks import EdgeStore
from reasonblocks.exceptions import StoreError
from tests.core.stores.world import Numbers, answer, pattern, request

pytest.importorskip("qdrant_edge")


def test_nothing_is_made_until_something_is_added(tmp_path: Path) -> None:
    with EdgeStore(tmp_path / "home", embedder=Numbers()) as store:
        found = len(store), store.search(request()), store.remove("a"), store.get("a")
        store.count(["a"], "injected")
        assert (found, list(tmp_path.iterdir())) == ((0, (), False, None), [])


def test_a_folder_of_another_embedder_is_refused_by_its_name(tmp_path: Path) -> None:
    with EdgeStore(tmp_path, embedder=Numbers("org/one")) as store:
        store.add([pattern("a")])
    with EdgeStore(tmp_path, embedder=Numbers("two")) as other, pytest.raises(StoreError, match="of embedder org/one"):
        other.search(request())


def test_a_second_process_is_told_that_it_is_one_too_many(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom reasonblocks import EdgeStore\nfrom tests.core.stores.world import Numbers, request\n"
        "EdgeStore(sys.argv[1], embedder=Numbers()).search(request())"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with EdgeStore(tmp_path, embedder=Numbers()) as store:
        store.add([pattern("a")])
        done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, env=env)
    assert "another process has it open" in done.stderr


def test_an_optimized_store_finds_the_same(tmp_path: Path) -> None:
    with EdgeStore(tmp_path, embedder=Numbers()) as store:
        done = [store.optimize()]
        store.add([pattern("a"), pattern("b", "e1")])
        before = [answer(store.search(request(tier))) for tier in ("e1", "e2")]
        done.append(store.optimize())
        assert (done, [answer(store.search(request(tier))) for tier in ("e1", "e2")]) == ([False, False], before)


def test_threads_that_read_and_write_at_once_lose_nothing(tmp_path: Path) -> None:
    with EdgeStore(tmp_path, embedder=Numbers()) as store:

        def work(thread: int) -> None:
            for number in range(6):
                store.add([pattern(f"{thread}-{number}", "e1", "1 1")])
                found = store.search(request("e1", top_k=1_000))
                assert {f"{thread}-{at}" for at in range(number + 1)} <= {one.pattern.id for one in found}

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
        assert len(store) == 24


def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom reasonblocks import EdgeStore\n"
        "from tests.core.stores.world import Numbers, pattern\nstore = EdgeStore(sys.argv[1], embedder=Numbers())\n"
        "store.add([pattern('a'), pattern('b')])\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=env, check=False)
    with EdgeStore(tmp_path, embedder=Numbers()) as store:
        assert answer(store.search(request())) == [("a", 1.0), ("b", 1.0)]
