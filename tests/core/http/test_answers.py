"""A server that lies is unavailable: nothing moves, and the agent gets nothing of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reasonblocks.backends.http import Ask, Exchange, address_of
from reasonblocks.backends.http.evaluator import read_answer
from reasonblocks.exceptions import BadAnswer
from reasonblocks.types import Evaluation
from reasonblocks.util.secret import Secret
from reasonblocks.wire import EvaluateResponse, RetrieveResponse
from reasonblocks_testing.rb_api import KEY, LIES, Lie, Lying, ScriptedRbApi, Status
from tests.core.http.world import EVALUATE, RETRIEVE, asked, at, client, gates, run

ABOUT_STEPS = {"inject as text", "unknown fired", "scores above 1", "long text"}
"""Lies in fields that an answer about lessons has not: they are ignored there."""


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_a_step_moves_nothing(api: ScriptedRbApi, lie: Lie) -> None:
    session = client(api).session()
    run(session, 2)
    api.misbehave(Lying(lie=lie), at=EVALUATE)
    before = session.trace.state
    (decided,) = run(session, 1, start=2)
    after = session.trace.state
    assert (decided.gate_decision, decided.scores, decided.injections) == ("unavailable", {}, ())
    assert (after.injected, after.evaluated, after.fired_before[:-1]) == (
        before.injected, before.evaluated, before.fired_before,
    )  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_about_lessons_gives_none(api: ScriptedRbApi, lie: Lie) -> None:
    api.misbehave(Lying(lie=lie), at=RETRIEVE)
    decided = run(client(api, e_traces_enabled=True).session(), 3)
    assert at(api, RETRIEVE) != []
    found = any(ids for decision in decided for ids in decision.retrieved.values())
    assert found is (lie in ABOUT_STEPS)


@pytest.mark.parametrize("lie", LIES)
def test_with_strict_a_lie_is_raised_with_the_server(api: ScriptedRbApi, lie: Lie) -> None:
    session = client(api, strict=True).session()
    run(session, 1)
    api.misbehave(Lying(lie=lie))
    if lie == "cut off":  # no answer at all
        assert gates(run(session, 1, start=1)) == ["unavailable"]
        return
    with pytest.raises(BadAnswer):
        run(session, 1, start=1)


WRONG: list[dict[str, Any]] = [
    {"inject": "false"}, {"inject": 1}, {"composite": "0.5"}, {"composite": 1.5}, {"composite": True},
    {"scores": {"a": 2}}, {"scores": {"a": None}}, {"scores": []}, {"fired": "a"}, {"fired": [1]},
    {"intervention_text": 5}, {"notes": [{"id": "a"}]}, {"notes": ["a"]}, {"partial": "no"}, {"doubts": [5]},
    {"monitor": 5}, {"kind": []},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_wrong_field_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer, match=f"the server: {next(iter(wrong))}"):
        read_answer(EvaluateResponse, "the server", json.dumps(wrong).encode())


BODIES = [
    b"",
    b"\xff\xfe",
    b"NaN",
    b'{"composite": NaN}',
    b"[]",
    b"null",
    b'"text"',
    b"{",
    b"[" * 100_000,
    b"9" * 10_000,
]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: repr(body[:20]))
@pytest.mark.parametrize("model", [EvaluateResponse, RetrieveResponse])
def test_a_body_that_is_no_object_is_refused(model: Any, body: bytes) -> None:
    with pytest.raises(BadAnswer):
        read_answer(model, "the server", body)


LARGE: list[tuple[Any, str]] = [
    (EvaluateResponse, '{"fired": [' + "1," * 100_000 + "1]}"),
    (EvaluateResponse, '{"notes": [' + "{}," * 80_000 + "{}]}"),
    (EvaluateResponse, '{"scores": {' + ",".join([f'"m{n}": "x"' for n in range(10_000)]) + "}}"),
    (EvaluateResponse, '{"doubts": [' + ",".join(["[" + "{}," * 60 + "{}]"] * 60) + "]}"),
    (RetrieveResponse, '{"traces": [' + "{}," * 80_000 + "{}]}"),
    (RetrieveResponse, '{"traces": [' + ",".join(['{"kinds": [' + "1," * 60 + "1]}"] * 60) + "]}"),
]


@pytest.mark.parametrize(("model", "body"), LARGE, ids=lambda value: str(value)[:24])
def test_a_lie_of_many_values_is_refused_without_a_look_at_each(model: Any, body: str) -> None:
    with pytest.raises(BadAnswer, match="entries") as raised:
        read_answer(model, "the server", body.encode())
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("answer", [{"inject": KEY}, {"scores": {KEY: 7}}, {"notes": [{KEY: KEY}]}], ids=repr)
def test_an_answer_that_repeats_the_key_is_refused_without_it(api: ScriptedRbApi, answer: dict[str, Any]) -> None:
    exchange = Exchange(address_of("base_url", api.url, Secret(KEY)))
    body = json.dumps(answer).encode()
    with pytest.raises(BadAnswer) as raised:
        exchange.ask("it", Ask(path="/health"), None, lambda _: read_answer(EvaluateResponse, "the server", body))
    assert KEY not in str(raised.value)
    assert KEY not in repr(vars(raised.value))
    exchange.close()


def test_fields_of_a_newer_server_are_ignored() -> None:
    assert read_answer(EvaluateResponse, "the server", b'{"new": [1]}').evaluation() == Evaluation()


def test_a_redirect_is_not_followed(api: ScriptedRbApi) -> None:
    with ScriptedRbApi() as other:
        api.misbehave(Status(code=307, headers={"Location": f"{other.url}/v1/monitors/evaluate"}))
        assert gates(run(client(api).session(), 2))[1] == "unavailable"
        assert other.requests == []


def test_a_step_with_anything_in_it_can_be_sent(api: ScriptedRbApi) -> None:
    from reasonblocks.types import Step, StepInput, ToolCall, ToolResult

    odd: Any = {"bytes": b"x", "set": {1}, "nan": float("nan"), "deep": None, 5: "five", "lone": "\ud800", "\udfff": 1}
    for _ in range(50):
        odd = {"deep": odd}
    call = ToolCall(id="\ud800", name="\ud800", arguments=odd)
    step = Step(
        thought="\ud800 hm", tool_calls=(call,), tool_results=(ToolResult(call_id="\ud800", output="\x00\ud800"),)
    )
    session = client(api, strict=True).session(task="\ud800")
    run(session, 1)
    assert session.begin_step(StepInput(key="odd", completed=step)).gate_decision not in (None, "unavailable")
    assert asked().index == 0
