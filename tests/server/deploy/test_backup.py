"""The backup of docs/server.md copies the data of a running server, and a server starts from the copy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from reasonblocks_server.storage import Storage
from tests.server.workers.clients import step_event

ROOT = Path(__file__).parents[3]


def test_a_backup_has_what_is_still_in_the_log_beside_the_database(tmp_path: Path) -> None:
    page = (ROOT / "docs/server.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^(python -c '\n.*?^' )~/", page, re.MULTILINE | re.DOTALL)
    data, copy = tmp_path / "data", tmp_path / "copy"
    copy.mkdir()
    data.mkdir()
    storage = Storage.open(f"sqlite:///{data / 'server.db'}")
    storage.migrate()
    storage.runs.ingest("default", [step_event("run-1", 0)], now=time.time())
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", f"{script} {data}"], cwd=copy, env={**os.environ, "PATH": path}, check=True)
    storage.close()
    restored = Storage.open(f"sqlite:///{copy / 'server.db'}")
    restored.migrate()
    found = restored.runs.get("default", "run-1")
    restored.close()
    assert found is not None
