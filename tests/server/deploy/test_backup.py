"""The backup of docs/server.md copies the data of a running server, and a server starts from the copy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.server.running import stored
from tests.server.workers.clients import step_event

ROOT = Path(__file__).parents[3]


def test_a_backup_has_what_is_still_in_the_log_beside_the_database(tmp_path: Path) -> None:
    page = (ROOT / "docs/server.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^(python -c '\n.*?^' )~/", page, re.MULTILINE | re.DOTALL)
    data, copy = tmp_path / "data", tmp_path / "copy"
    copy.mkdir()
    data.mkdir()
    with stored(data) as storage:
        storage.runs.ingest("default", [step_event("run-1", 0)], now=time.time())
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        subprocess.run(["sh", "-c", f"{script} {data}"], cwd=copy, env={**os.environ, "PATH": path}, check=True)
    with stored(copy) as restored:
        assert restored.runs.get("default", "run-1") is not None
