"""Packs many runs into one page: each is a gzipped fragment that the page's script unpacks when it is opened."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Iterator

from . import _text as text
from ._html import Listing, run_fragment, run_page, runs_page_parts
from ._line import RunLine, run_line
from ._page import RunPage
from ._tally import Tally

LEVEL = 6
"""The level of gzip: 9 takes twice the time for 1 % less."""


class OnePage:
    """A page that contains its runs. Add them one after another; then `parts` has the page.

    A single run is a page of its own, without a list.
    """

    def __init__(self, title: str = "Runs", *, limit: int | None = text.CLIP) -> None:
        self.title, self.limit = title, limit
        self.tally = Tally()
        self._lines: list[RunLine] = []
        self._packed: list[str] = []
        self._first: RunPage | None = None

    def add(self, page: RunPage) -> None:
        """Add a run; its page may be dropped afterwards. Raises `ExtraMissing` without jinja2."""
        name = f"run-{len(self._lines)}"
        self._first = None if self._lines else page
        self.tally.add(page)
        self._lines.append(run_line(page, f"#{name}"))
        self._packed.append(packed(run_fragment(page, prefix=f"{name}-", limit=self.limit)))

    def parts(self) -> Iterator[str]:
        """Yield the page in parts."""
        if self._first is not None:
            return iter([run_page(self._first, limit=self.limit)])
        listing = Listing(lines=self._lines, tally=self.tally, title=self.title, packed=self._packed)
        return runs_page_parts(listing)


def packed(fragment: str) -> str:
    """Return the fragment as base64 text of its gzip; equal fragments give equal text."""
    return b64encode(gzip.compress(fragment.encode("utf-8"), LEVEL, mtime=0)).decode("ascii")
