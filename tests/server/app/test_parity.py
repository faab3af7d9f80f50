"""A client of the real server makes the same decisions as an embedded one, in every field of every entry."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from reasonblocks.backends.local_store import LocalStore
from reasonblocks_testing._http_parity import WAYS, Way, compared, recorded, shared_out
from reasonblocks_testing._parity_runs import LESSONS, long_runs, store_of
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.parity.runs import CORPUS
from tests.server.running import running
from tests.whole import WHOLE, in_whole

QUICK = ("default", "settings")
"""The ways that are compared at every commit; each takes half a second."""
FIRST, MOST_STEPS = 2, 40
"""Recorded runs of each source; benchmarks/http_parity.py --server takes more."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URL and the key of a server with the patterns of the embedded client."""
    folder = tmp_path_factory.mktemp("parity")
    with LocalStore(folder / "patterns.db") as store:
        store.add(store_of(LESSONS).list("default"))
    with running(folder, static_keys=("parity-key-of-tests",)) as found:
        yield found.url, "parity-key-of-tests"


@pytest.mark.parametrize("way", [way for way in WAYS if WHOLE or way.name in QUICK], ids=lambda way: way.name)
def test_a_long_run_is_decided_alike(way: Way, server: tuple[str, str]) -> None:
    run = recorded(next(long_runs()).script)
    found = compared(way, [run], server=server)
    assert found.entries >= len(run.steps)
    assert found.texts > 0
    assert not found.differences, "\n".join(found.differences)


@in_whole
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_recorded_runs_of_every_source_are_decided_alike(way: Way, server: tuple[str, str]) -> None:
    if not CORPUS.is_dir():
        pytest.skip("the shared corpus is not beside the repository")
    found = compared(way, shared_out(_first())[way.name], server=server)
    assert found.runs > 0
    assert not found.differences, "\n".join(found.differences)


def _first() -> Iterator[RecordedRun]:
    for path in sorted(CORPUS.glob("*.jsonl.gz")):
        runs = (run for run in read_runs(str(path)) if isinstance(run, RecordedRun))
        yield from islice((run for run in runs if 1 < len(run.steps) <= MOST_STEPS), FIRST)
