"""The parts of the tests that take minutes more, which the matrix runs: REASONBLOCKS_WHOLE=1."""

from __future__ import annotations

import os

import pytest

WHOLE = os.environ.get("REASONBLOCKS_WHOLE") == "1"
QUICK_EXAMPLES = 30
"""The examples of a property test at every commit; Hypothesis' own 100 with `WHOLE`."""
in_whole = pytest.mark.skipif(not WHOLE, reason="takes long: REASONBLOCKS_WHOLE=1 runs it, as the matrix does")
