"""Finds an installed Chromium, and opens pages in it without a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

VARIABLE = "REASONBLOCKS_BROWSER"
"""The variable with the path of a Chromium."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


def missing() -> str:
    """Return why pages cannot be opened and how to change that, "" if they can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "no playwright: pip install playwright"
    if browser_path() is None:
        given = os.environ.get(VARIABLE)
        found = f"{VARIABLE}={given} is no file" if given else "no Chromium"
        return f"{found}: apt-get install chromium, or set {VARIABLE} to the path of one"
    return ""


def browser_path() -> str | None:
    """Return the path of a Chromium: the variable's, or the first that is found by its name."""
    given = os.environ.get(VARIABLE)
    if given:
        return given if os.path.isfile(given) else None
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """Open a Chromium. Raises `RuntimeError` with the reason if there is none."""
    why = missing()
    if why:
        raise RuntimeError(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser_path(), args=[*ARGUMENTS])
        try:
            yield opened
        finally:
            opened.close()
