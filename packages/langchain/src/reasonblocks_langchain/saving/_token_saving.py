"""Validates the options of token saving, and shortens texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from reasonblocks.exceptions import ConfigError
from reasonblocks.types import JSON

from ._ledger import Book, SavingPlan
from ._parts import NOTE_CHARS, RequestPart
from ._request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSaving:
    """Shortens old, long tool outputs in a request. Its methods never change the history or the ledger.

    - `keep`: the number of newest results that are never shortened. Errors, and results that the model has not read
      yet, are never shortened either.
    - `over_chars`: texts up to this length are never shortened.
    - `head`, `tail`: the number of characters kept at the start and at the end.
    - `read_price`, `write_price`: the price of a token read from the provider's prompt cache, and of one written to it;
      1 is the price of a token without a cache. The default is the least favourable rule, which covers all others. If
      there is no prompt cache, set both to 1.

    Raises `ConfigError` for a wrong value.

    In a loop of your own, call `plan` for each request, and pass the ledger that the plan's `ledger` returns to the
    next call:

    >>> from reasonblocks import Usage
    >>> from reasonblocks_langchain import RequestPart, TokenSaving
    >>> saving = TokenSaving(read_price=1, write_price=1)
    >>> page = RequestPart(kind="result", key="call-1", texts=("page " * 4_000,))
    >>> short = [RequestPart(kind="result", key=f"call-{n}", texts=("ok",)) for n in (2, 3)]
    >>> plan = saving.plan([page, *short, RequestPart(kind="answer", texts=("All read.",))], ledger=None)
    >>> plan.cut
    (0,)
    >>> saving.shortened(page.texts[0])[890:960]
    'page page \\n[... 18,400 characters left out ...]\\npage page page page pa'
    >>> ledger = plan.ledger(Usage(input=6_000))
    """

    keep: int = 2
    over_chars: int = 1_800
    head: int = 900
    tail: int = 700
    read_price: float = 0.1
    write_price: float = 2.0

    def __post_init__(self) -> None:
        for name, least in (("keep", 1), ("over_chars", 1), ("head", 0), ("tail", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ConfigError(name, value, f"must be a whole number of at least {least}")
        if self.over_chars < self.head + self.tail + NOTE_CHARS:
            least = self.head + self.tail + NOTE_CHARS
            raise ConfigError("over_chars", self.over_chars, f"must be at least head + tail + {NOTE_CHARS} = {least}")
        _check_price("read_price", self.read_price, 0.001, 1)
        _check_price("write_price", self.write_price, 1, 10)

    @property
    def strictness(self) -> float:
        """The cost of writing a token again, divided by the gain of saving one token in one call."""
        return (self.write_price - self.read_price) / self.read_price

    def shortened(self, text: str) -> str:
        """Return the start and the end of a long text with a note of the omitted length; a short text unchanged."""
        if len(text) <= self.over_chars:
            return text
        start, end = self._span(text)
        return f"{text[:start]}\n[... {end - start:,} characters left out ...]\n{text[end:]}"

    def plan(
        self, parts: Sequence[RequestPart], ledger: Mapping[str, JSON] | None = None, *, model: str = ""
    ) -> SavingPlan:
        """Return the plan for this request. The same arguments give the same plan.

        `ledger` is the one returned by the plan of the last answered request, or None for the first. `model` is the
        name of the called model, since each model has its own cache. Raises `ConfigError` for an invalid ledger.
        """
        return Request.of(self, parts, Book.of(ledger), model).plan()

    def _span(self, text: str) -> tuple[int, int]:
        """Return the start and the end of what a long text loses."""
        return self.head, len(text) - self.tail


def _check_price(name: str, value: object, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise ConfigError(name, value, "must be a number")
    if not least <= value <= most:
        raise ConfigError(name, value, f"must be between {least} and {most}")
