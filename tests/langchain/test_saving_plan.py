"""Token saving: what it shortens, and that at no call of any run the bill is higher than without it."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from typing import Any

import pytest
from _saving_bill import (
    ANTHROPIC,
    ANTHROPIC_1H,
    OPENAI_10,
    OPENAI_50,
    RULES,
    SILENT,
    UNMARKED,
    Bill,
    Cache,
    Rule,
    bills,
    quarters,
    shortened,
    worst_ratio,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import Usage
from reasonblocks.exceptions import ConfigError
from reasonblocks_langchain import RequestPart, TokenSaving
from reasonblocks_langchain.saving import LOST, _token_saving, is_longer, json_bytes
from reasonblocks_langchain.saving._sizes import PIECE_CHARS, least_tokens, utf8
from tests.whole import QUICK_EXAMPLES, WHOLE

SMALL = TokenSaving(head=100, tail=100, over_chars=264)
FREE = TokenSaving(read_price=1, write_price=1)
PROSE = "some words that tokenizers know, and then more of them. "
WARM = Usage(input=20_000, cache_read=20_000, cache_write=100)
NO_CACHE = Usage(input=20_000, cache_read=0, cache_write=0)


def prose(size: int) -> str:
    return (PROSE * (size // len(PROSE) + 1))[:size]


def result(key: str | None, size: int, **more: Any) -> RequestPart:
    return RequestPart(kind="result", key=key, texts=(prose(size),), **more)


def answer(at: int, size: int = 40) -> RequestPart:
    return RequestPart(kind="answer", key=f"a{at}", texts=(prose(size),))


def run_of(*sizes: int, task: int = 30_000) -> list[list[RequestPart]]:
    """The turns of a run whose tools give outputs of these sizes."""
    return [
        [RequestPart(key="task", texts=(prose(task),))],
        *([answer(at), result(f"r{at}", size)] for at, size in enumerate(sizes)),
    ]


def cuts(turns: Sequence[Sequence[RequestPart]], saving: TokenSaving, usage: Usage | None = WARM) -> list[set[str]]:
    """The keys of what each call shortens, if every answer reports this usage."""
    sent: list[RequestPart] = []
    ledger, found = None, []
    for turn in turns:
        sent += turn
        plan = saving.plan(sent, ledger)
        found.append({sent[at].key or "" for at in plan.cut})
        ledger = plan.ledger(usage)
    return found


# ------------------------------------------------------------ texts


@given(st.text(max_size=4_000), st.integers(0, 900), st.integers(0, 900), st.integers(64, 400))
def test_a_long_text_keeps_its_start_and_end_and_says_how_much_is_left_out(
    text: str, head: int, tail: int, more: int
) -> None:
    saving = TokenSaving(head=head, tail=tail, over_chars=head + tail + more)
    short = saving.shortened(text)
    if len(text) <= saving.over_chars:
        assert short == text
        return
    note = f"\n[... {len(text) - head - tail:,} characters left out ...]\n"
    assert short == text[:head] + note + text[len(text) - tail :]
    assert len(short) <= saving.over_chars
    assert saving.shortened(short) == short


def test_an_unknown_kind_is_a_config_error_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'answer'"):
        RequestPart(kind="answr")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"keep": 0}, "keep"),
        ({"keep": True}, "keep"),
        ({"head": -1}, "head"),
        ({"tail": 1.5}, "tail"),
        ({"over_chars": 1_663}, "over_chars"),
        ({"read_price": 0}, "read_price"),
        ({"read_price": 1.1}, "read_price"),
        ({"read_price": "cheap"}, "read_price"),
        ({"write_price": 0.9}, "write_price"),
        ({"write_price": float("nan")}, "write_price"),
    ],
)
def test_a_wrong_option_is_a_config_error_with_its_name(options: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError) as raised:
        TokenSaving(**options)
    assert raised.value.name == name


LEDGER = TokenSaving().plan([result("r", 10)], model="m").ledger(WARM)
ACCOUNT: Any = {"credit": 0, "uncached": 0, "last": None, "ends": [], "tokens": None}


@pytest.mark.parametrize(
    "ledger",
    [
        {},
        [],
        "ledger",
        {**LEDGER, "version": 2},
        {**LEDGER, "cut": 7},
        {**LEDGER, "cut": "abc"},
        {**LEDGER, "cut": [[1]]},
        {**LEDGER, "saved": {"r": None}},
        {**LEDGER, "saved": {"r": [1, "2"]}},
        {**LEDGER, "first": 3},
        {**LEDGER, "others": [["a"]]},
        {**LEDGER, "models": {"m": 1}},
        *({**LEDGER, "models": {"m": {**ACCOUNT, name: value}}} for name, value in [
            ("credit", "z"), ("credit", None), ("uncached", True), ("last", 1), ("ends", "abc"), ("ends", [1]),
            ("tokens", 1.5),
        ]),
    ],
)  # fmt: skip
def test_a_foreign_ledger_is_a_config_error(ledger: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        TokenSaving().plan([result("r", 10)], ledger, model="m")
    assert raised.value.name == "ledger"


def test_additional_keys_of_a_ledger_are_ignored() -> None:
    account = {**ACCOUNT, "more": 1}
    more: Any = {**LEDGER, "models": {"m": account}, "more": 1}
    assert TokenSaving().plan([result("r", 10)], more, model="m").ledger()["version"] == LEDGER["version"]


def test_the_example_of_a_loop_works() -> None:
    assert doctest.testmod(_token_saving).attempted > 5
    assert doctest.testmod(_token_saving).failed == 0


@given(st.text(max_size=300))
def test_a_text_has_at_least_as_many_tokens_as_words_and_groups_of_digits(text: str) -> None:
    assert least_tokens(text) <= len(text)
    assert least_tokens(text + "=" * 100) == least_tokens(text)


SPLIT = re.compile(
    r"[^\r\na-z0-9]?[a-z]+(?:'(?:s|t|re|ve|m|ll|d))?|[0-9]{1,3}| ?[^\sa-z0-9]+[\r\n/]*|\s+", re.IGNORECASE
)
"""Splits ASCII text as o200k does before it makes tokens: the ending of a contraction belongs to its word."""


@given(st.text("abst're12 .D", max_size=60))
def test_contractions_count_as_one_word(text: str) -> None:
    assert least_tokens("don't they're we'll") == 3
    assert least_tokens(text) <= len(SPLIT.findall(text))


@given(st.text("ab1' é", max_size=12), st.integers(0, 9), st.integers(0, 9))
def test_a_text_read_in_pieces_has_the_same_size(text: str, start: int, more: int) -> None:
    filling = "x" * (PIECE_CHARS - 6)
    assert utf8(filling + text, start) == len((filling + text)[start:].encode())
    assert utf8(text, start, start + more) == len(text[start : start + more].encode())
    assert least_tokens(filling + text) == len(re.findall(r"[^\W\d]+|[0-9]+", filling + text.replace("'", "")))


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSONS)
def test_a_value_has_at_least_the_bytes_of_its_json_in_either_form(value: Any) -> None:
    assert json_bytes(value) >= len(json.dumps(value))
    assert json_bytes(value) >= len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def test_a_long_value_is_found_without_reading_all_of_it() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert is_longer(endless, 1_000)
    assert is_longer({"a": ["b" * 1_000]}, 900)
    assert not is_longer({"a": ["b" * 800]}, 900)


# ------------------------------------------------------------ what is shortened


def test_without_a_cache_old_long_results_are_shortened_and_the_newest_are_not() -> None:
    assert cuts(run_of(20_000, 20_000, 20_000, 20_000), FREE) == [set(), set(), set(), {"r0"}, {"r0", "r1"}]


def test_errors_short_results_and_results_without_a_name_of_their_own_stay_whole() -> None:
    old = [
        result("error", 20_000, is_error=True),
        result("short", 1_800),
        result(None, 20_000),
        result("twice", 20_000),
        result("twice", 20_000),
        result("long", 20_000),
    ]
    parts = [*old, result("k1", 20_000), result("k2", 20_000), answer(1)]
    assert FREE.plan(parts).cut == (5,)


def test_results_that_the_model_has_not_read_stay_whole() -> None:
    parts = [answer(0), *(result(f"r{at}", 20_000) for at in range(5))]
    assert FREE.plan(parts).cut == ()
    assert FREE.plan([*parts, answer(1)]).cut == (1, 2, 3)


def test_less_than_a_tenth_of_the_request_is_not_worth_a_change() -> None:
    assert cuts(run_of(4_000, 100, 100, task=40_000), FREE)[-1] == set()
    assert cuts(run_of(4_000, 100, 100, task=4_000), FREE)[-1] == {"r0"}


def test_every_text_of_a_result_counts() -> None:
    page = RequestPart(kind="result", key="page", texts=("ok", prose(30_000), prose(30_000)))
    plan = FREE.plan([page, result("k1", 1), result("k2", 1), answer(1)])
    assert plan.cut == (0,)
    assert plan.saved_tokens > least_tokens(prose(50_000))


# ------------------------------------------------------------ when


def test_a_warm_cache_is_left_alone_while_a_change_does_not_pay_at_once() -> None:
    assert cuts(run_of(*[6_000] * 20), TokenSaving())[-1] == set()


def test_a_huge_result_before_short_ones_is_shortened_although_the_cache_is_warm() -> None:
    found = cuts(run_of(500_000, 50, 50, 50), TokenSaving())
    assert found[3] == found[4] == {"r0"}
    assert cuts(run_of(500_000, 50, 50, 50), TokenSaving(), None)[-1] == set()


def test_what_a_change_has_gained_pays_for_the_next_one() -> None:
    sizes = (500_000, 50, 50, 50, *[50] * 10, 20_000, 50, 50, 50)
    assert cuts(run_of(*sizes), TokenSaving())[-1] == {"r0", "r14"}
    assert cuts(run_of(50, *sizes[1:]), TokenSaving())[-1] == set()


def test_the_prices_of_a_milder_cache_let_it_pay_earlier() -> None:
    turns = run_of(30_000, 50, 50, 50)
    assert cuts(turns, TokenSaving())[-1] == set()
    assert cuts(turns, TokenSaving(read_price=0.5, write_price=1))[-1] == {"r0"}


def test_two_long_answers_in_a_row_without_a_cache_show_that_there_is_none() -> None:
    turns = run_of(20_000, 20_000, 50, 50, 50)
    assert cuts(turns, TokenSaving(), NO_CACHE)[-1] == {"r0", "r1"}
    for usage in (
        None,
        Usage(),
        Usage(input=20_000, cache_read=0),
        Usage(input=4_000, cache_read=0, cache_write=0),
        Usage(input=20_000, cache_read=1_024, cache_write=0),
    ):
        assert cuts(turns, TokenSaving(), usage)[-1] == set()


def test_a_cache_that_begins_to_work_counts_from_then_on() -> None:
    turns = run_of(50, 50, 50, 20_000, 50, 50)
    sent = [part for turn in turns for part in turn]
    ledger: dict[str, Any] | None = None
    for _ in range(2):
        ledger = TokenSaving().plan(sent[:-2], ledger).ledger(NO_CACHE)
    assert TokenSaving().plan(sent, ledger).cut != ()
    warm = TokenSaving().plan(sent[:-2], ledger).ledger(Usage(input=20_000, cache_read=0, cache_write=15_000))
    assert TokenSaving().plan(sent, warm).cut == ()


def test_a_prompt_stays_long_enough_to_be_cached() -> None:
    assert cuts(run_of(30_000, 50, 50, 50, task=50), TokenSaving(), NO_CACHE)[-1] == set()
    assert cuts(run_of(30_000, 50, 50, 50, task=50), FREE)[-1] == {"r0"}


def test_after_a_summary_the_rest_is_written_anew_anyway() -> None:
    turns = run_of(20_000, 20_000, 20_000, 50, 50, 50)
    before = [part for turn in turns for part in turn]
    plan = TokenSaving().plan(before)
    assert plan.cut == ()
    summary = RequestPart(key="summary", texts=(f"So far: {prose(30_000)}",))
    after = TokenSaving().plan([summary, *before[1:], answer(9)], plan.ledger())
    assert len(after.cut) == 3


def test_a_first_message_that_comes_and_goes_makes_no_change_free() -> None:
    parts = [part for turn in run_of(*[12_000] * 4, 50, 50) for part in turn]
    ledger = TokenSaving().plan(parts[:-2]).ledger(WARM)
    context = RequestPart(key="context", texts=("Today is Monday.",))
    with_context = TokenSaving().plan([context, *parts], ledger)
    assert with_context.cut != ()
    without = TokenSaving().plan(parts, with_context.ledger(WARM))
    assert without.cut == ()
    assert TokenSaving().plan([context, *parts], without.ledger(WARM)).cut == with_context.cut


HALF = TokenSaving(read_price=0.5, write_price=1)


def test_after_a_lost_ledger_nothing_is_shortened_until_the_loss_is_paid_back() -> None:
    parts = [part for turn in run_of(500_000, 50, 50, 50) for part in turn]
    assert HALF.plan(parts, None).cut == (2,)
    lost = HALF.plan(parts, LOST)
    assert lost.cut == ()
    assert HALF.plan([*parts, answer(9)], lost.ledger(WARM), model="another").cut == ()
    assert FREE.plan(parts, LOST).cut == (2,)


def test_a_long_result_is_measured_once_also_if_it_stays_whole() -> None:
    parts = [part for turn in run_of(200_000, 50, 120_000, 50) for part in turn]
    ledger: Any = HALF.plan(parts).ledger(WARM)
    assert ledger["cut"] == []
    assert ledger["saved"]["r0"][0] == 200_000
    measured = {**ledger, "saved": {"r0": [200_000, 10**6]}}
    assert HALF.plan(parts, measured).saved_tokens == 10**6
    edited = {**ledger, "saved": {"r0": [199_999, 10**6]}}
    assert HALF.plan(parts, edited).cut == ()


def test_what_is_not_text_does_not_make_a_prompt_long_enough_to_be_cached() -> None:
    short = [part for turn in run_of(500_000, 50, 50, 50, task=50) for part in turn]
    image = with_fields(short[0], other_bytes=30_000)
    assert HALF.plan([image, *short[1:]]).cut == ()


def test_a_request_without_messages_is_no_fault() -> None:
    plan = TokenSaving().plan([])
    assert plan.cut == ()
    assert TokenSaving().plan([result("r", 10)], plan.ledger(WARM)).cut == ()


def test_a_request_that_ends_in_a_passing_message_changes_nothing() -> None:
    parts = [part for turn in run_of(500_000, 50, 50) for part in turn]
    ledger = TokenSaving().plan(parts[:1]).ledger(WARM)
    assert TokenSaving().plan([*parts, RequestPart(texts=("Guidance.",))], ledger).cut == ()
    assert TokenSaving().plan(parts, ledger).cut == (2,)


def test_the_same_arguments_give_the_same_plan_and_the_ledger_is_plain_json() -> None:
    parts = [part for turn in run_of(500_000, 50, 50, 50) for part in turn]
    plan = TokenSaving().plan(parts, None, model="m")
    assert plan == TokenSaving().plan(parts, None, model="m")
    ledger = plan.ledger(Usage(input=5_000))
    assert json.loads(json.dumps(ledger)) == ledger
    assert TokenSaving().plan(parts, ledger, model="m").cut == plan.cut


# ------------------------------------------------------------ never dearer, at any call


@dataclass(frozen=True, kw_only=True)
class Event:
    """One call of a random run, and the turn that it adds."""

    sizes: tuple[int, ...]
    thought: int = 40
    model: int = 0
    error: bool = False
    guided: bool = False
    """The request ends in a message that is in this request only."""
    expired: bool = False
    """The caches have forgotten everything before this call."""
    summary: bool = False
    """The turns before the newest three are replaced by a summary."""
    repeated: bool = False
    """The call fails and is made again."""
    dated: int = 0
    """The request begins with this one of several messages that come and go; 0 is none."""


SIZES = st.sampled_from([10, 250, 400, 2_000, 8_000, 40_000])
EVENTS = st.builds(
    Event,
    sizes=st.lists(SIZES, min_size=1, max_size=3).map(tuple),
    thought=st.sampled_from([10, 10, 40, 800]),
    model=st.sampled_from([0, 0, 0, 1]),
    error=st.sampled_from([False, False, False, True]),
    guided=st.sampled_from([False, False, False, True]),
    expired=st.sampled_from([False] * 7 + [True]),
    summary=st.sampled_from([False] * 11 + [True]),
    repeated=st.booleans(),
    dated=st.sampled_from([0, 0, 0, 0, 1, 2]),
)
ONE_MODEL = EVENTS.map(lambda event: with_fields(event, model=0))


def sparse(text: str) -> int:
    """As few tokens as a text can have."""
    return least_tokens(text)


def dense(text: str) -> int:
    return len(text) * 2 // 5


def against_us(text: str) -> int:
    """A shortened run in which the omitted text has few tokens, and everything else has many."""
    return sparse(text) if len(text) > SMALL.over_chars or "left out" in text else dense(text)


TOKENIZERS = st.sampled_from([quarters, sparse, dense, against_us])
PRICED = st.sampled_from([rule for rule in RULES if rule.caches])


@dataclass
class Line:
    """A run with or without saving: its caches, ledger and bills by model."""

    rule: Rule
    saving: TokenSaving | None
    tokens: Any
    caches: dict[int, Cache] = field(default_factory=dict)
    ledger: dict[str, Any] | None = None
    sums: dict[int, float] = field(default_factory=dict)
    cut: dict[tuple[str, ...], set[str]] = field(default_factory=dict)
    """The results that the last request with the same first message had shortened."""

    def call(self, parts: list[RequestPart], event: Event) -> Bill:
        if event.expired:
            self.caches = {}
        cache = self.caches.setdefault(event.model, Cache(self.rule))
        if self.saving is None:
            bill = cache.bill(parts, self.tokens)
        else:
            before = [*parts]
            plan = self.saving.plan(parts, self.ledger, model=str(event.model))
            if event.repeated:
                assert self.saving.plan(parts, self.ledger, model=str(event.model)) == plan
            assert parts == before
            self._check(parts, plan.cut, event)
            bill = cache.bill(shortened(parts, self.saving, plan.cut), self.tokens)
            self.ledger = json.loads(json.dumps(plan.ledger(cache.usage(bill))))
        self.sums[event.model] = self.sums.get(event.model, 0) + bill.billed
        return bill

    def _check(self, parts: list[RequestPart], cut: tuple[int, ...], event: Event) -> None:
        results = [at for at, part in enumerate(parts) if part.kind == "result"]
        assert not {*cut} & {*results[-SMALL.keep :]}
        assert not any(parts[at].is_error for at in cut)
        keys = {parts[at].key or "" for at in cut}
        if event.summary:
            self.cut = {}
        assert keys >= self.cut.get(parts[0].texts, set())
        self.cut[parts[0].texts] = keys


def requests(events: Sequence[Event]) -> Iterator[tuple[list[RequestPart], Event]]:
    """The request of each call."""
    parts = [RequestPart(key="task", texts=(prose(30_000),))]
    for at, event in enumerate(events):
        if event.summary and len(parts) > 7:
            answers = [place for place, part in enumerate(parts) if part.kind == "answer"]
            start = answers[-3] if len(answers) > 2 else answers[0]
            parts = [RequestPart(key=f"summary {at}", texts=(f"{at} {prose(30_000)}",)), *parts[start:]]
        tail = [RequestPart(texts=(f"guidance {at}",))] if event.guided else []
        head = [RequestPart(texts=(f"Today is day {event.dated}.",))] if event.dated else []
        yield [*head, *parts, *tail], event
        calls = len(event.sizes)
        parts.append(
            RequestPart(kind="answer", key=f"a{at}", texts=(f"{at} {prose(event.thought)}",), blocks=1 + calls)
        )
        for n, size in enumerate(event.sizes):
            text = f"{at} {n} {prose(size)}"
            parts.append(RequestPart(kind="result", key=f"r{at}-{n}", texts=(text,), is_error=event.error and not n))


def check_never_dearer(rule: Rule, saving: TokenSaving, tokens: Any, events: Sequence[Event]) -> bool:
    """Compare the two bills after every call, and by model; return True if anything was shortened."""
    whole, short = Line(rule, None, tokens), Line(rule, saving, tokens)
    saved = False
    for parts, event in requests(events):
        without, ours = whole.call(parts, event), short.call(parts, event)
        saved = saved or ours.tokens < without.tokens
        for model, total in short.sums.items():
            assert total <= whole.sums[model] + 1e-6
    return saved


@settings(max_examples=60 if WHOLE else QUICK_EXAMPLES // 2, deadline=None)
@given(PRICED, TOKENIZERS, st.lists(ONE_MODEL, min_size=6, max_size=30))
def test_a_run_with_one_model_is_at_no_call_dearer(rule: Rule, tokens: Any, events: list[Event]) -> None:
    check_never_dearer(rule, SMALL, tokens, events)
    own = with_fields(SMALL, read_price=rule.read, write_price=rule.write)
    check_never_dearer(rule, own, tokens, events)


@settings(max_examples=60 if WHOLE else QUICK_EXAMPLES // 2, deadline=None)
@given(PRICED, TOKENIZERS, st.lists(EVENTS, min_size=6, max_size=30))
def test_a_run_that_changes_its_model_is_at_no_call_dearer_with_either(
    rule: Rule, tokens: Any, events: list[Event]
) -> None:
    own = with_fields(SMALL, read_price=rule.read, write_price=rule.write)
    check_never_dearer(rule, own, tokens, events)


@settings(max_examples=40 if WHOLE else QUICK_EXAMPLES // 2, deadline=None)
@given(st.sampled_from([UNMARKED, SILENT]), TOKENIZERS, st.lists(EVENTS, min_size=6, max_size=30))
def test_a_run_without_a_cache_is_at_no_call_dearer(rule: Rule, tokens: Any, events: list[Event]) -> None:
    check_never_dearer(rule, SMALL, tokens, events)
    check_never_dearer(rule, with_fields(SMALL, read_price=1, write_price=1), tokens, events)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_huge_result_saves_under_every_rule_that_reports_or_is_given(rule: Rule) -> None:
    turns = run_of(500_000, *[50] * 20)
    own = TokenSaving(read_price=rule.read, write_price=rule.write)
    without, ours = [*bills(turns, rule, None)], [*bills(turns, rule, own)]
    assert sum(bill.billed for bill in ours) < 0.9 * sum(bill.billed for bill in without)
    assert worst_ratio(without, ours) <= 1


# ------------------------------------------------------------ the model of the cache


def test_a_marked_cache_reads_the_last_request_and_writes_the_rest() -> None:
    turns = run_of(4_000, 4_000)
    first, second, _ = bills(turns, ANTHROPIC, None)
    assert (first.read, first.plain) == (0, 0)
    assert second.read == first.tokens
    assert second.billed == pytest.approx(0.1 * second.read + 1.25 * second.written)


def test_a_cache_without_marks_reads_in_steps_of_128_and_bills_the_rest_in_full() -> None:
    first, second, _ = bills(run_of(4_000, 4_000), OPENAI_50, None)
    assert first.plain == first.tokens
    assert second.read == first.tokens // 128 * 128
    assert second.billed == second.read / 2 + second.plain


def test_a_prompt_below_the_minimum_is_not_cached() -> None:
    large = with_fields(ANTHROPIC, least=100_000)
    assert all(bill.plain == bill.tokens for bill in bills(run_of(50, 50), large, None))


def test_the_default_prices_are_the_least_favourable_ones() -> None:
    strictness = [TokenSaving(read_price=rule.read, write_price=rule.write).strictness for rule in RULES]
    assert TokenSaving().strictness == max(strictness)
    assert strictness[RULES.index(ANTHROPIC_1H)] == pytest.approx(19)
    assert strictness[RULES.index(OPENAI_10)] == pytest.approx(9)
