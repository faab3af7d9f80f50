"""Decides what to shorten in one request.

The unit of every sum is the price of reading one token from the provider's prompt cache. Shortening `saved` tokens
gains at least `saved` in each call. Changing a cached prefix costs `strictness` for each token to be written again. An
output is shortened only if the gains of earlier calls and of this call cover that cost at once. The total cost is
therefore never higher, after any call, than without shortening.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING

from reasonblocks.util.text import digest

from ._ledger import CACHED_TOKENS, Account, Book, SavingPlan
from ._parts import NOTE_CHARS, RequestPart
from ._sizes import least_tokens, utf8

if TYPE_CHECKING:
    from ._token_saving import TokenSaving

NOTE_TOKENS = 24
"""The most tokens that the note adds, including those from splitting the text around it anew."""
PART_TOKENS = 8
"""The most tokens that a provider adds to each message, for its role and its delimiters."""
BYTES_A_TOKEN = 2.5
"""The lowest average of bytes per token, as in dense JSON; prose has more than 4."""
LEAST_BYTES = 6 * CACHED_TOKENS
"""The least bytes of texts after shortening, at 6 a token, because a shorter prompt may not be cached at all."""
GRAIN_TOKENS = 127
"""The tokens that a cached prefix may lose by rounding down: OpenAI's cache counts in steps of 128."""
LOOKBACK = 18
"""Content blocks before the end of a request within which a shorter cached prefix is found: 20 at Anthropic, of which
guidance at the end may take one, and the marked block is one."""
ENDS = 10
"""The number of newest requests whose ends are stored; earlier ends are never within those blocks."""
PAYBACK_CALLS = 10
"""Calls within which a change of the prefix has to pay for itself by its own saving."""
FREE_SHARE = 10
"""If changing the prefix costs nothing, it is changed once that saves this part of the texts: a tenth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """A change of the prefix: all new results from the position `start` on are shortened, which leaves `left` bytes of
    texts.

    `gain` is the gain of this call, including the results shortened before. `costs` has, by model, the cost of writing
    the prefix again.
    """

    start: int
    saved: int
    gain: int
    left: int
    costs: Mapping[str, int]

    @property
    def worth(self) -> int:
        """The net gain of the move after `PAYBACK_CALLS` calls."""
        return PAYBACK_CALLS * self.saved - sum(self.costs.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request together with the ledger."""

    saving: TokenSaving
    parts: Sequence[RequestPart]
    book: Book
    model: str
    answered: int
    """The position of the newest answer: the parts before it were in the last request."""
    moved: bool
    """True if the conversation begins with a message that none has begun with, so that no cache has any part of it."""
    allowed: Mapping[int, str]
    """The keys of the results that may be shortened, by position."""
    old: frozenset[int]
    """The positions of those that were also shortened in earlier requests."""
    new: tuple[int, ...]
    """The positions of the others."""
    known: dict[int, int]
    """The tokens that shortening saves, by position, as far as they were measured."""
    places: Mapping[str, int]
    """The position after each message, by its key."""

    @classmethod
    def of(cls, saving: TokenSaving, parts: Sequence[RequestPart], book: Book, model: str) -> Request:
        answered = next((at for at in range(len(parts) - 1, -1, -1) if parts[at].kind == "answer"), 0)
        before = book
        if parts:
            book = book.beginning_with(digest("\n".join(parts[0].texts)))
        allowed = _allowed(saving, parts, answered)
        known = {at: book.saved.get(key, (0, 0)) for at, key in allowed.items()}
        old = frozenset(at for at, key in allowed.items() if key in book.cut)
        new = Account(credit=-_debt(saving, parts[:answered]) if book.lost and allowed else 0)
        return cls(
            saving=saving,
            parts=parts,
            book=replace(book, accounts={model: new, **book.accounts}),
            model=model,
            answered=answered,
            moved=before.first is not None and book.first not in (before.first, *dict(before.others)),
            allowed=allowed,
            old=old,
            new=tuple(at for at in allowed if at not in old),
            known={at: saved for at, (chars, saved) in known.items() if chars == _chars(parts[at])},
            places={part.key: at for at, part in enumerate(parts, 1) if part.key is not None},
        )

    def plan(self) -> SavingPlan:
        move = self._move()
        cut = self.old if move is None else self.old.union(at for at in self.new if at >= move.start)
        saved = sum(map(self._saved, cut))
        book = replace(
            self.book,
            cut=frozenset(self.allowed[at] for at in cut),
            saved={self.allowed[at]: (_chars(self.parts[at]), tokens) for at, tokens in self.known.items()},
            accounts=self._after(move, saved - self._slack if cut else 0),
        )
        return SavingPlan(cut=tuple(sorted(cut)), saved_tokens=saved, _book=book, _model=self.model)

    def _after(self, move: _Move | None, gain: int) -> dict[str, Account]:
        """Return the accounts after this call, with the cost in each model's cache and the gain of this model."""
        costs: Mapping[str, int] = {} if move is None else move.costs
        start = 0 if self.moved else len(self.parts) if move is None else move.start
        accounts = {
            name: replace(
                account,
                credit=account.credit - costs.get(name, 0),
                ends=tuple(key for key in account.ends if self.places.get(key, len(self.parts)) <= start),
            )
            for name, account in self.book.accounts.items()
        }
        own = accounts[self.model]
        last = next((part.key for part in reversed(self.parts) if part.key is not None), None)
        ends = (*own.ends, last)[-ENDS:] if last is not None and last == self.parts[-1].key else own.ends
        accounts[self.model] = replace(own, credit=own.credit + gain, last=last, ends=ends)
        return accounts

    @property
    def _slack(self) -> int:
        """The most that one call may lose because the cache rounds its prefixes down."""
        return ceil(GRAIN_TOKENS * self.saving.strictness)

    def _move(self) -> _Move | None:
        """Return the best affordable move, or None. Most requests are decided by their lengths alone."""
        if not self.new or (self.saving.strictness and self.parts[-1].key is None):
            return None  # a message that is only in this request leaves no prefix for the next one
        sizes = Sizes.of(self)
        return None if self._best(sizes, self._saved_at_most) is None else self._best(sizes, self._saved)

    def _best(self, sizes: Sizes, saved: Callable[[int], int]) -> _Move | None:
        moves = [move for move in self._moves(sizes, saved) if self._pays(move, sizes)]
        return max(moves, key=lambda move: (move.worth, -move.start), default=None)

    def _moves(self, sizes: Sizes, saved: Callable[[int], int]) -> Iterator[_Move]:
        """Yield a move for each start. It also shortens every result after its start, since that makes it cheaper."""
        ends, found = self._cached_ends(), self._found(sizes)
        before = sum(map(self._saved, self.old)) - self._slack
        total = 0
        for start in reversed(self.new):
            total += saved(start)
            begins = {self.model: max((at for at in found if at <= start), default=0)}
            costs = {
                name: ceil(self.saving.strictness * sizes.most_tokens(begins.get(name, 0), start, end))
                for name, end in ends.items()
                if start < end
            }
            yield _Move(start=start, saved=total, gain=total + before, left=sizes.left(start), costs=costs)

    def _cached_ends(self) -> dict[str, int]:
        """Return, by model, the end of the longest prefix that its cache may have: the end of its last request."""
        if self.moved or not self.saving.strictness:
            return {}
        accounts = self.book.accounts.items()
        ends = {name: self.places.get(account.last or "", self.answered) for name, account in accounts if account.warm}
        return {name: min(end, self.answered) for name, end in ends.items()}

    def _found(self, sizes: Sizes) -> list[int]:
        """Return the ends of the prefixes that this model's cache finds: the ends of requests some blocks back."""
        ends = (self.places.get(key, 0) for key in self.book.accounts[self.model].ends)
        return [end for end in ends if sizes.blocks[-1] - sizes.blocks[end] <= LOOKBACK]

    def _pays(self, move: _Move, sizes: Sizes) -> bool:
        """Return True if a move gains something, and each account can pay its costs."""
        if move.saved <= 0 or move.gain < 0 or (self.saving.strictness and move.left < LEAST_BYTES):
            return False
        if not move.costs:
            return FREE_SHARE * (sizes.texts_now[-1] - move.left) >= sizes.texts_now[-1]
        accounts = self.book.accounts.items()
        paid = all(account.credit + move.gain >= move.costs.get(name, 0) for name, account in accounts)
        return paid and move.worth >= 0

    def long_texts(self, at: int) -> list[str]:
        return [text for text in self.parts[at].texts if len(text) > self.saving.over_chars]

    def _saved(self, at: int) -> int:
        """Return a lower bound of the tokens that shortening this part saves."""
        if at not in self.known:
            texts = self.long_texts(at)
            self.known[at] = sum(least_tokens(text, *self.saving._span(text)) - NOTE_TOKENS for text in texts)
        return self.known[at]

    def _saved_at_most(self, at: int) -> int:
        """Return an estimate of `_saved` without reading: a text has at most half as many words as characters."""
        kept = self.saving.head + self.saving.tail
        return self.known.get(at) or sum((len(text) - kept) // 2 + 1 for text in self.long_texts(at))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Running sums over a request's parts; item n is the sum of the first n.

    `texts_now` are the bytes of texts with the new results whole, `texts_then` those with all results shortened.
    `others` is an upper bound of the other bytes, so that it counts for costs only. `blocks` are content blocks.
    """

    texts_now: Sequence[int]
    texts_then: Sequence[int]
    others: Sequence[int]
    blocks: Sequence[int]

    @classmethod
    def of(cls, request: Request) -> Sizes:
        parts, saving, new = request.parts, request.saving, {*request.new}
        full = [sum(map(utf8, part.texts)) for part in parts]
        short = [*full]
        for at in request.allowed:
            left_out = sum(utf8(text, *saving._span(text)) for text in request.long_texts(at))
            short[at] += NOTE_CHARS * len(parts[at].texts) - left_out
        return cls(
            texts_now=_sums(size if at in new else short[at] for at, size in enumerate(full)),
            texts_then=_sums(short),
            others=_sums(part.other_bytes for part in parts),
            blocks=_sums(part.blocks for part in parts),
        )

    def left(self, start: int) -> int:
        """Return the bytes of the texts if the new results are shortened from `start` on."""
        return self.texts_now[start] + self.texts_then[-1] - self.texts_then[start]

    def most_tokens(self, begin: int, start: int, end: int) -> int:
        """Return the most tokens from `begin` to `end` if the new results are shortened from `start` on."""
        size = self.texts_now[start] - self.texts_now[begin] + self.texts_then[end] - self.texts_then[start]
        return _most_tokens(size + self.others[end] - self.others[begin], end - begin)


def _sums(sizes: Iterable[int]) -> list[int]:
    return [*accumulate(sizes, initial=0)]


def _most_tokens(size: int, parts: int) -> int:
    """Return the most tokens of this many bytes in this many parts."""
    return ceil(size / BYTES_A_TOKEN) + PART_TOKENS * parts


def _debt(saving: TokenSaving, parts: Sequence[RequestPart]) -> int:
    """Return the most that sending these parts whole costs, if the ledger that knew the shortened ones is lost."""
    size = sum(part.other_bytes + sum(map(utf8, part.texts)) for part in parts)
    return ceil(saving.strictness * _most_tokens(size, len(parts)))


def _chars(part: RequestPart) -> int:
    return sum(map(len, part.texts))


def _allowed(saving: TokenSaving, parts: Sequence[RequestPart], answered: int) -> dict[int, str]:
    """Return the keys of the results that may be shortened, by position."""
    keys = Counter(part.key for part in parts)
    results = [at for at, part in enumerate(parts) if part.kind == "result"][: -saving.keep]
    named = ((at, parts[at].key) for at in results if at < answered and not parts[at].is_error)
    return {
        at: key
        for at, key in named
        if key is not None and keys[key] == 1 and any(len(text) > saving.over_chars for text in parts[at].texts)
    }
