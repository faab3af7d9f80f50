"""The ledger of token saving: the shortened results, and their gains and costs with each model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from reasonblocks.exceptions import ConfigError
from reasonblocks.types import JSON, Usage

CACHED_TOKENS = 4_096
"""The shortest prompt that every provider caches: Anthropic's largest minimum; OpenAI's is 1,024."""
UNCACHED_ANSWERS = 2
"""Answers in a row that have to report a long request as uncached before the cache counts as absent."""
VERSION = 1
"""The version of the ledger's JSON. Additional keys do not change it."""
BEGINNINGS = 8
"""The number of earlier first messages that are stored."""
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
        return replace(
            self,
            uncached=self.uncached + 1 if _shows_no_cache(usage) else 0,
            ends=self.ends if read_all else tuple(key for key in self.ends if key == self.last),
            tokens=usage.input,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """The ledger: the shortened results, the measured size and saving of each result, and the accounts by model.

    The shortened results are those of requests that begin with the same message, since only they share a prefix.
    """

    cut: frozenset[str] = frozenset()
    saved: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The characters of each measured result, and the tokens that shortening it saves."""
    accounts: Mapping[str, Account] = field(default_factory=dict)
    first: str | None = None
    """A digest of the first message."""
    others: tuple[tuple[str, frozenset[str]], ...] = ()
    """The digests of earlier first messages, and the results shortened after each; the latest is last."""
    lost: bool = False
    """True if the ledger replaces an unreadable one, so that earlier requests may have had shortened results."""

    @classmethod
    def of(cls, ledger: Mapping[str, JSON] | None) -> Book:
        """Return the ledger from its JSON; other keys are ignored. Raises `ConfigError` for any other value."""
        if ledger is None:
            return cls()
        given = cast("Mapping[str, Any]", ledger)
        try:
            if given["version"] != VERSION:
                raise ValueError(given["version"])
            return cls(
                cut=frozenset(_strings(given["cut"])),
                saved={key: (_int(chars), _int(saved)) for key, (chars, saved) in given["saved"].items()},
                accounts={_string(name): _account(account) for name, account in given["models"].items()},
                first=_string_or_none(given["first"]),
                others=tuple((_string(first), frozenset(_strings(cut))) for first, cut in given["others"]),
                lost=bool(given["lost"]),
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
        return {
            "version": VERSION,
            "cut": sorted(self.cut),
            "saved": {key: [*measured] for key, measured in self.saved.items()},
            "models": models,
            "first": self.first,
            "others": [[first, sorted(cut)] for first, cut in self.others],
            "lost": self.lost,
        }

    def beginning_with(self, first: str) -> Book:
        """Return the ledger for a request whose first message has this digest.

        A request with a different first message shares no prefix with the last one. One with an earlier first message
        has to be sent as it was, since a cache may still have it.
        """
        if self.first is None or self.first == first:
            return replace(self, first=first)
        earlier = dict(self.others)
        cut = earlier.pop(first, frozenset())
        return replace(
            self,
            first=first,
            cut=cut,
            others=(*earlier.items(), (self.first, self.cut))[-BEGINNINGS:],
            accounts={name: replace(account, last=None, ends=()) for name, account in self.accounts.items()},
        )


LOST: Mapping[str, JSON] = Book(lost=True).as_json()
"""The ledger that replaces an unreadable one."""


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


def _account(given: Mapping[str, Any]) -> Account:
    return Account(
        credit=_int(given["credit"]),
        uncached=_int(given["uncached"]),
        last=_string_or_none(given["last"]),
        ends=_strings(given["ends"]),
        tokens=None if given["tokens"] is None else _int(given["tokens"]),
    )


def _int(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _string_or_none(value: object) -> str | None:
    return None if value is None else _string(value)


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(value)
    return tuple(map(_string, value))
