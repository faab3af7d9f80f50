"""Files of runs, of proposals and of settings are named by a `Path` or another path as they are by a text."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import JsonlSink, SQLiteMonitorSink
from reasonblocks.backends.profiles import ProfileFile
from reasonblocks.events import RunFinish, RunStart
from reasonblocks.exceptions import ConfigError, RecordError
from reasonblocks.types import RunInfo
from reasonblocks_testing._parity_runs import recorded_runs
from reasonblocks_workbench.cli.files import home_path, read_recorded, size, write
from reasonblocks_workbench.cli.options import settings_of_file
from reasonblocks_workbench.learning import read_proposals, write_proposals
from reasonblocks_workbench.traces import read_logs, read_records, read_runs
from reasonblocks_workbench.traces.follow import Following

EVENTS = (
    RunStart(run=RunInfo(run_id="a"), timestamp=1.0),
    RunFinish(run_id="a", timestamp=2.0, outcome="success"),
)


class Named:
    """A path of another class than `Path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return os.fspath(self.path)


paths = pytest.mark.parametrize("named", [Path, Named])


@paths
@pytest.mark.parametrize("sink", [JsonlSink, SQLiteMonitorSink])
def test_a_log_is_read_by_its_path(tmp_path: Path, named: Any, sink: Any) -> None:
    path = tmp_path / "runs.log"
    with closing(sink(named(path))) as made:
        for event in EVENTS:
            made.emit(event)
    for read in (read_runs, read_logs, lambda path: read_recorded(path, lambda at: None)):
        (run,) = read(named(path))
        assert not isinstance(run, RecordError)
        assert (run.run_id, run.file) == ("a", str(path))
    following = Following(named(path))
    following.poll()
    assert (following.exists, following.path) == (True, str(path))
    assert size(named(path)) == path.stat().st_size


@paths
def test_an_error_shows_the_path_as_text(tmp_path: Path, named: Any) -> None:
    path = tmp_path / "missing.jsonl"
    for read in (read_runs, read_logs, read_records):
        (error,) = read(named(path))
        assert isinstance(error, RecordError)
        assert str(error) == f"{path}: no such file"
    assert [*recorded_runs(named(path))] == [f"{path}: no such file"]


@paths
def test_proposals_are_written_and_read_by_their_path(tmp_path: Path, named: Any) -> None:
    path = tmp_path / "proposals.jsonl"
    write_proposals(named(path), ())
    assert read_proposals(named(path)) == ()
    path.write_text("{")
    with pytest.raises(ConfigError, match="is not JSON") as caught:
        read_proposals(named(path))
    assert str(path) in str(caught.value)


@paths
def test_settings_are_read_by_their_path(tmp_path: Path, named: Any) -> None:
    path = tmp_path / "reasonblocks.toml"
    write(named(path), 'calibration = "level.toml"\n')
    assert settings_of_file(named(path)) == {"calibration": str(tmp_path / "level.toml")}
    assert home_path(named(path), "x", "--x") == path


@paths
def test_profiles_are_copied_by_their_path(tmp_path: Path, named: Any) -> None:
    ProfileFile(named(tmp_path / "a")).add(("o", "agent", "coding"), "run", {})
    ProfileFile(named(tmp_path / "a")).copy_to(named(tmp_path / "b"), [("o", "agent", "coding")])
    assert len(ProfileFile(named(tmp_path / "b")).agents()) == 1
