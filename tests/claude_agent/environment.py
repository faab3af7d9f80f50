"""A separate environment for the CLI: it inherits almost nothing, and no request leaves this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEPT = ("PATH", "LANG", "PYTHONWARNINGS", "REASONBLOCKS_STRICT", "REASONBLOCKS_PARITY", "PYTEST_CURRENT_TEST")
NOWHERE = "http://127.0.0.1:9"


@contextmanager
def scrubbed_environment(home: Path) -> Iterator[Path]:
    """Replace the environment of this process until the block ends."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update({name: before[name] for name in KEPT if name in before})
    os.environ.update(HOME=str(home), ANTHROPIC_BASE_URL=NOWHERE, ANTHROPIC_API_KEY="none")
    os.environ["CLAUDE_CODE_STREAM_CLOSE_TIMEOUT"] = "300000"  # a busy machine takes long to start several sessions
    try:
        yield home
    finally:
        os.environ.clear()
        os.environ.update(before)
