"""The ledger of token saving: the shortened results, and their gains and costs with each model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ..exceptions import ConfigError
from ..types import JSON, Usage

CACHED_TOKENS = 4_096
"""The shortest prompt that every provider caches: Anthropic's largest minimum; OpenAI's is 1,024."""
UNCACHED_ANSWERS = 2
"""Answers in a row that have to report a long request as uncached before the cache counts as absent."""
READ_SHARE = 0.9
"""The part of the last request that has to be read from the cache to count as all of it; rounding loses tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The gains and costs of shortening with one model, and the known facts about that model's cache."""

    credit: int = 0
    uncached: int = 0
    """The number of answers in a row that reported an uncached request."""
    last: str | None = None
    """The key of the last message sent to the model."""
    ends: tuple[str, ...] = ()
    """The last keys of the newest requests whose messages are still sent in the same form. A cache that takes marks has
    only prefixes that end there."""
    tokens: int | None = None
    """The tokens of the last request, as reported by its answer."""

    @property
    def warm(self) -> bool:
        return self.uncached < UNCACHED_ANSWERS

    def answered(self, usage: Usage) -> Account:
        """Return the account after an answer with this usage.

        If the cache did not read the whole last request, the prefixes of earlier requests may have expired.
        """
        read_all = (usage.cache_read or 0) >= READ_SHARE * (self.tokens or 0) > 0
        this = tuple(key for key in self.ends if key == self.last)
        return replace(
            self,
            uncached=self.uncached + 1 if _shows_no_cache(usage) else 0,
            ends=self.ends if read_all else this,
            tokens=usage.input,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """The ledger: the shortened results, the measured saving of each result, the accounts by model, and a digest of the
    first message."""

    cut: frozenset[str] = frozenset()
    saved: Mapping[str, int] = field(default_factory=dict)
    accounts: Mapping[str, Account] = field(default_factory=dict)
    first: str | None = None

    @classmethod
    def of(cls, ledger: Mapping[str, JSON] | None) -> Book:
        if ledger is None:
            return cls()
        given = cast("Mapping[str, Any]", ledger)
        try:
            return cls(
                cut=frozenset(given["cut"]),
                saved={key: int(saved) for key, saved in given["saved"].items()},
                accounts={
                    name: Account(**{**account, "ends": tuple(account["ends"])})
                    for name, account in given["models"].items()
                },
                first=given["first"],
            )
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            raise ConfigError("ledger", ledger, "must be what `SavingPlan.ledger` returned") from exc

    def as_json(self) -> dict[str, JSON]:
        models: dict[str, JSON] = {
            name: {
                "credit": account.credit,
                "uncached": account.uncached,
                "last": account.last,
                "ends": [*account.ends],
                "tokens": account.tokens,
            }
            for name, account in self.accounts.items()
        }
        return {"cut": sorted(self.cut), "saved": dict(self.saved), "models": models, "first": self.first}


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingPlan:
    """The plan of one request: the positions of the results to shorten, and a lower bound of the saved tokens."""

    cut: tuple[int, ...] = ()
    saved_tokens: int = 0
    _book: Book
    _model: str

    def ledger(self, usage: Usage | None = None) -> dict[str, JSON]:
        """Return the ledger for the next request, as plain JSON. `usage` is the usage reported for this request.

        Store the ledger only after the request has been answered, so that a repeated request starts from the same one.
        """
        account = self._book.accounts[self._model].answered(usage or Usage())
        return replace(self._book, accounts={**self._book.accounts, self._model: account}).as_json()


def _shows_no_cache(usage: Usage | None) -> bool:
    """Return True if an answer reports no cached tokens for a request that is long enough for every cache.

    A provider that does not report written tokens may just have cached the request.
    """
    return (
        usage is not None and usage.cache_read == 0 and usage.cache_write == 0 and (usage.input or 0) >= CACHED_TOKENS
    )
