"""A budget of US dollars ends a run at the list prices of its calls, and is told truly on the way."""

from __future__ import annotations

import re
import sys
from decimal import Decimal

import pytest
from genai_prices import Usage as Priced
from genai_prices import calc_price
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import Budget, ReasonBlocks
from reasonblocks.events import entry_of, event_of, step_event
from reasonblocks.exceptions import ExtraMissing, RunStopped
from reasonblocks.session.prices import load_prices
from reasonblocks.session.session import SteeringSession
from reasonblocks.types import Step, StepInput, StepOutcome, ToolCall, ToolResult, Usage
from tests.core.world import through_json

MODEL = "claude-sonnet-4-5"


def client(limit: float, **options: object) -> ReasonBlocks:
    budget = Budget(cost_usd=limit, every_call=True)
    return ReasonBlocks(budget=budget, e_traces_enabled=False, strict=True, step_deadline_ms=20_000, **options)  # type: ignore[arg-type]


def call(session: SteeringSession, number: int, *usages: Usage, model: str = MODEL, auxiliary: bool = False) -> str:
    """Make a call, with a usage for each attempt, of which all but the last fail; return what was told before it."""
    made = ToolCall(id=f"c{number}", name="read_file", arguments={"path": f"{number}.py"})
    done = Step(thought="I read.", tool_calls=(made,), tool_results=(ToolResult(call_id=made.id, output=made.id),))
    decision = session.begin_step(StepInput(completed=done if number else None, auxiliary=auxiliary))
    for at, usage in enumerate(usages, 1):
        error = None if at == len(usages) else "Timeout: no answer"
        session.end_step(decision, StepOutcome(model=model, usage=usage, tool_calls=(made,), error=error))
    return "".join(told.text for told in decision.injections)


def price(usage: Usage, model: str = MODEL) -> Decimal:
    """The price of a call, as the package states it."""
    counts = Priced(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read or 0,
        cache_write_tokens=usage.cache_write or 0,
    )
    return calc_price(counts, model).total_price


@st.composite
def used(draw: st.DrawFn) -> Usage:
    read, written = draw(st.integers(0, 4_000)), draw(st.integers(0, 2_000))
    whole = read + written + draw(st.integers(1, 20_000))
    return Usage(input=whole, output=draw(st.integers(1, 5_000)), cache_read=read, cache_write=written)


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(st.lists(used(), min_size=1, max_size=12), st.sampled_from([0.02, 0.1, 0.25, 1.0, 12.5]))
def test_each_sentence_about_a_cost_is_true(usages: list[Usage], limit: float) -> None:
    session, spent, stopped = client(limit).session(), Decimal(0), False
    for number, usage in enumerate(usages):
        try:
            line = call(session, number, usage)
        except RunStopped:
            stopped = True
            break
        assert spent < Decimal(str(limit))
        assert bool(line) is bool(spent)
        if found := re.match(r"Budget: (less than )?([\d.]+) of ([\d.]+) US dollars (is|are) left\.", line):
            left, told = float(Decimal(str(limit)) - spent), float(found[2])
            assert float(found[3]) == limit
            assert (0 < left < told) if found[1] else (-1e-9 < left - told < limit / 100)
        else:
            assert not line
        spent += price(usage)
        assert session.trace.state.cost_usd == pytest.approx(float(spent))
    assert stopped is (spent >= Decimal(str(limit)) and number == len(session.step_log))
    session.finish()
    assert session.final is None or session.final.run_cost_usd == pytest.approx(float(spent))
    assert sum(entry.cost_usd or 0 for entry in session.step_log) == pytest.approx(float(spent))


def test_a_cost_is_on_the_wire_and_read_back() -> None:
    session = client(1.0).session()
    usage = Usage(input=1_000, output=200)
    for number in range(2):
        call(session, number, usage)
    session.finish()
    entries = [*session.step_log, session.final]
    assert [entry.cost_usd for entry in entries if entry] == [float(price(usage)), float(price(usage)), None]
    read = [entry_of(event_of(step_event("r", entry, None, {}).as_dict())) for entry in entries if entry]  # type: ignore[arg-type]
    assert [(entry.cost_usd, entry.run_cost_usd) for entry in read] == [
        (float(price(usage)), None),
        (float(price(usage)), None),
        (None, pytest.approx(2 * float(price(usage)))),
    ]


def test_what_a_cache_gave_costs_less() -> None:
    session = client(1.0).session()
    call(session, 0, Usage(input=10_000, output=1))
    call(session, 1, Usage(input=10_000, output=1, cache_read=9_000))
    first, second = (entry.cost_usd or 0 for entry in session.step_log)
    assert 0 < second < first / 2


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929"])
def test_a_model_is_known_by_its_providers_name_too(model: str) -> None:
    session = client(1.0).session()
    call(session, 0, Usage(input=1_000, output=100), model=model)
    assert session.step_log[0].cost_usd == float(price(Usage(input=1_000, output=100)))


@pytest.mark.parametrize(
    ("model", "usage", "reason"),
    [
        ("our-own-7b", Usage(input=10**9, output=10**9), "the price of a call of model 'our-own-7b' is unknown"),
        ("", Usage(input=10**9, output=10**9), "the price of a call of model '' is unknown"),
        (MODEL, Usage(), "a call reported no tokens"),
    ],
)
def test_a_cost_that_is_unknown_is_no_limit(
    model: str, usage: Usage, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    session = client(0.05).session()
    call(session, 0, Usage(input=1_000, output=100))
    lines = [call(session, number, usage, model=model) for number in range(1, 4)]
    session.finish()
    assert [bool(line) for line in lines] == [True, False, False]
    assert [entry.cost_usd is None for entry in session.step_log] == [False, True, True, True]
    assert session.final is not None
    assert session.final.run_cost_usd is None
    warned = [record.message for record in caplog.records if "cost_usd" in record.message]
    assert warned == [f"run {session.run.run_id!r}: {reason}, so budget.cost_usd does not limit this run"]


def test_retries_and_auxiliary_calls_cost_too() -> None:
    session, usage = client(1.0).session(), Usage(input=1_000, output=100)
    call(session, 0, usage, Usage(), usage)  # the second attempt failed before anything was counted
    call(session, 1, usage, auxiliary=True)
    each = float(price(usage))
    assert [entry.cost_usd for entry in session.step_log] == [pytest.approx(2 * each), pytest.approx(each)]
    assert session.trace.state.cost_usd == pytest.approx(3 * each)


def test_a_resumed_run_goes_on_with_its_cost() -> None:
    first, usage = client(1.0).session(), Usage(input=1_000, output=100)
    call(first, 0, usage)
    second = client(1.0).session(snapshot=through_json(first.trace.snapshot()))
    call(second, 1, usage)
    assert second.trace.state.cost_usd == pytest.approx(2 * float(price(usage)))


def test_a_run_without_such_a_budget_has_no_cost() -> None:
    with ReasonBlocks(budget=Budget(calls=3), e_traces_enabled=False, strict=True) as rb, rb.session() as session:
        call(session, 0, Usage(input=1_000, output=100), model="our-own-7b")
    assert (session.step_log[0].cost_usd, session.final and session.final.run_cost_usd) == (None, None)


def test_a_missing_package_is_named_where_the_budget_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    load_prices.cache_clear()
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(ExtraMissing, match=r"a budget of cost_usd needs genai-prices: pip install 'genai-prices>="):
        client(1.0)
