"""Bills the requests of a run by the rules of a provider's prompt cache, with and without token saving.

A request is the system prompt with the tools, then the messages. Its tokens are those read from the cache, those
written to it, and the rest; only the tokens of requests are billed, since the answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from reasonblocks import Step, Usage
from reasonblocks_langchain import RequestPart, TokenSaving

SYSTEM_TOKENS = 2_000
"""The tokens of the system prompt and the tools, which are cached apart where a cache takes marks."""
Tokens = Callable[[str], int]
Turn = Sequence[RequestPart]
"""An answer and its results; the first turn of a run is the task."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The prices of a prompt cache, in the price of a token without one, and what it finds.

    `marked`: its prefixes end where requests ended, and one is found up to `lookback` blocks back. Otherwise any common
    prefix is found, in steps of `grain` tokens. `reports` is False if answers do not say what was cached.
    """

    name: str
    read: float = 1.0
    write: float = 1.0
    least: int = 1_024
    marked: bool = False
    lookback: int = 20
    grain: int = 128
    reports: bool = True

    @property
    def caches(self) -> bool:
        return self.read < 1


ANTHROPIC = Rule(name="anthropic", read=0.1, write=1.25, marked=True)
ANTHROPIC_LARGE = replace(ANTHROPIC, name="anthropic, 4,096 tokens at least", least=4_096)
ANTHROPIC_1H = replace(ANTHROPIC, name="anthropic, 1 hour", write=2.0)
OPENAI_10 = Rule(name="openai, read at 0.1", read=0.1)
OPENAI_25 = replace(OPENAI_10, name="openai, read at 0.25", read=0.25)
OPENAI_50 = replace(OPENAI_10, name="openai, read at 0.5", read=0.5)
UNMARKED = Rule(name="anthropic without marks", marked=True)
SILENT = Rule(name="no cache, not reported", reports=False)
RULES = (ANTHROPIC, ANTHROPIC_LARGE, ANTHROPIC_1H, OPENAI_10, OPENAI_25, OPENAI_50, UNMARKED, SILENT)


@dataclass(frozen=True, kw_only=True)
class Bill:
    """The tokens of one request, and what they cost in tokens without a cache."""

    read: int
    written: int
    plain: int
    billed: float

    @property
    def tokens(self) -> int:
        return self.read + self.written + self.plain


@dataclass
class Cache:
    """One model's prompt cache, which forgets nothing."""

    rule: Rule
    _held: set[int] = field(default_factory=set)
    """Hashes of prefixes of requests."""

    def bill(self, parts: Turn, tokens: Tokens) -> Bill:
        sizes = [SYSTEM_TOKENS, *(sum(map(tokens, part.texts)) + part.other_bytes // 4 for part in parts)]
        sums = [*accumulate(sizes)]
        prefixes = [*accumulate((part.texts for part in parts), lambda *pair: hash(pair), initial=0)]
        if not self.rule.caches or sums[-1] < self.rule.least:
            return self._billed(0, 0, sums[-1])
        read = self._found(parts, prefixes, sums)
        self._held |= {prefixes[0], prefixes[-1]} if self.rule.marked else {*prefixes}
        if self.rule.marked:
            return self._billed(read, sums[-1] - read, 0)
        return self._billed(read, 0, sums[-1] - read)

    def _found(self, parts: Turn, prefixes: Sequence[int], sums: Sequence[int]) -> int:
        places = range(len(parts), -1, -1)
        if not self.rule.marked:
            whole = next((sums[at] for at in places if prefixes[at] in self._held), 0)
            return whole // self.rule.grain * self.rule.grain if whole >= self.rule.least else 0
        back = 0
        for at in places:
            if prefixes[at] in self._held and (back < self.rule.lookback or not at):
                return sums[at] if sums[at] >= self.rule.least else 0
            back += parts[at - 1].blocks if at else 0
        return 0

    def _billed(self, read: int, written: int, plain: int) -> Bill:
        billed = self.rule.read * read + self.rule.write * written + plain
        return Bill(read=read, written=written, plain=plain, billed=billed)

    def usage(self, bill: Bill) -> Usage:
        if not self.rule.reports:
            return Usage(input=bill.tokens)
        return Usage(input=bill.tokens, cache_read=bill.read, cache_write=bill.written if self.rule.marked else None)


def quarters(text: str) -> int:
    """Return the usual estimate: a token for 4 characters."""
    return -(-len(text) // 4)


def turns_of(task: str, steps: Sequence[Step]) -> list[Turn]:
    """Return the turns of a recorded run."""
    return [(RequestPart(key="task", texts=(task,)),), *(_turn(at, step) for at, step in enumerate(steps))]


def _turn(at: int, step: Step) -> Turn:
    calls = len(step.tool_calls)
    texts = tuple(filter(None, (step.reasoning, step.thought)))
    size = len(step.action) + len(step.action_input)
    answer = RequestPart(
        kind="answer", key=f"answer-{at}", texts=texts, other_bytes=size, blocks=max(1, len(texts) + calls)
    )
    results = (
        RequestPart(kind="result", key=f"result-{at}-{n}", texts=(result.output,), is_error=result.is_error is True)
        for n, result in enumerate(step.tool_results)
    )
    return (answer, *results)


def bills(turns: Sequence[Turn], rule: Rule, saving: TokenSaving | None, tokens: Tokens = quarters) -> Iterator[Bill]:
    """Yield the bill of each call: the first one sends the task, each later one a turn more."""
    cache, ledger = Cache(rule), None
    sent: list[RequestPart] = []
    for turn in turns:
        sent += turn
        if saving is None:
            yield cache.bill(sent, tokens)
            continue
        plan = saving.plan(sent, ledger)
        bill = cache.bill(shortened(sent, saving, plan.cut), tokens)
        ledger = plan.ledger(cache.usage(bill))
        yield bill


def shortened(parts: Turn, saving: TokenSaving, cut: Sequence[int]) -> list[RequestPart]:
    """Return the messages as they are sent."""
    sent = [*parts]
    for at in cut:
        sent[at] = replace(sent[at], texts=tuple(map(saving.shortened, sent[at].texts)))
    return sent


def worst_ratio(without: Sequence[Bill], with_saving: Sequence[Bill]) -> float:
    """Return the largest ratio of the two sums after any call."""
    sums = zip(accumulate(bill.billed for bill in with_saving), accumulate(bill.billed for bill in without))
    return max((ours / theirs for ours, theirs in sums), default=1.0)
