"""Static pages of runs: one run, a list of runs, and counts over many.

The package reads only its own templates, and uses no clock. Rendering a page needs jinja2, from the extra `[report]`.
"""

from __future__ import annotations

from .html import (
    SCRIPT,
    STYLESHEET,
    TEMPLATES,
    Assets,
    Listing,
    NavLink,
    OnePage,
    health_page,
    run_page,
    runs_page,
)
from .line import RunLine, run_line
from .page import ROUTINE, STANDING, Row, RunPage, Told, Verdict, completed_before
from .sources import page_of_log, page_of_replayed
from .tally import Tally

__all__ = [
    "ROUTINE", "SCRIPT", "STANDING", "STYLESHEET", "TEMPLATES", "Assets", "Listing", "NavLink", "OnePage", "Row",
    "RunLine", "RunPage", "Tally", "Told", "Verdict", "completed_before", "health_page", "page_of_log",
    "page_of_replayed", "run_line", "run_page", "runs_page",
]  # fmt: skip
