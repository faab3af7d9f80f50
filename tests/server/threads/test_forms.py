"""Forms of answers bring back what they show, and every line of a log has words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, get_args

from hypothesis import example, given
from hypothesis import strategies as st

from reasonblocks.util.folding import visible
from reasonblocks_server.ui._answer_forms import Field, WrongField, forms_of, read_answer_form
from reasonblocks_server.ui._thread_words import ANSWERS, PHASES, QUESTIONS, entries_of, exact
from reasonblocks_threads import Actor, Answer, Card, Phase, Stage, ThreadEvent
from reasonblocks_threads.phases import AnswerName, CardKind
from reasonblocks_threads.values import KINDS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
EDIT = Answer(name="edit", label="Correct it", takes=("parameters", "action", "text"))


def consent(parameters: dict[str, Any]) -> Card:
    return Card(
        id="th_1.9", thread_id="th_1", org_id="acme", kind="consent", phase=Phase.AWAITING_CONFIRMATION,
        stage=Stage.ACTION, title="", cause="", opened_at=0.0, expires_at=None, action="deploy",
        parameters=parameters, answers=(EDIT,), actions=("deploy", "hand_off"),
    )  # fmt: skip


def sent(fields: list[Field]) -> dict[str, str]:
    """Return what a browser sends for unchanged fields."""
    return {
        field.name: field.value.replace("\r\n", "\n").replace("\n", "\r\n").replace("\r\n", "\n") for field in fields
    }


def fields_of(card: Card) -> list[Field]:
    (form,) = forms_of(card, ["edit"])
    return [*form.fields]


@given(st.dictionaries(st.text(), JSON, max_size=5))
@example({"a": "line\r\nline", "b": "\u202eexe", "c": "\x00", "d": "1", "e": "\ud800", "f": '"x"', "g": " ", "h": "\n"})
@example({f"k{at}": at for at in range(60)})
def test_an_unchanged_form_changes_nothing(parameters: dict[str, Any]) -> None:
    card = consent(parameters)
    assert read_answer_form(card, "edit", sent(fields_of(card)), 0.0) == {}


@given(st.dictionaries(st.text(), JSON, min_size=1, max_size=4), st.data())
def test_a_changed_field_is_the_value_of_its_parameter(parameters: dict[str, Any], data: st.DataObject) -> None:
    card = consent(parameters)
    at, key = data.draw(st.sampled_from([*enumerate(parameters)]))
    value = data.draw(st.text().filter(lambda text: visible(text) == text) | JSON)
    kind = next(field.kind for field in fields_of(card) if field.name == f"p{at}")
    if isinstance(parameters[key], str):
        value = str(value)
    typed = str(value) if kind == "text" else exact(value)
    given_back = read_answer_form(card, "edit", {**sent(fields_of(card)), f"p{at}": typed}, 0.0)
    expected = {} if exact(value) == exact(parameters[key]) else {"parameters": {key: value}}
    assert given_back == expected


@given(st.text())
def test_the_json_of_a_value_shows_every_character(text: str) -> None:
    assert visible(exact(text)) == exact(text)


@given(st.dictionaries(st.sampled_from(["all", "p0", "p1", "more", "text", "pick", "until", "to"]), st.text()))
def test_any_form_is_read_or_refused(form: dict[str, str]) -> None:
    for parameters in ({"a": 1, "b": "x"}, {f"k{at}": at for at in range(60)}):
        with suppress(WrongField):
            found = read_answer_form(consent(parameters), "edit", form, 0.0)
            assert {*found} <= {"text", "action", "parameters"}


NAMES = ["to", "proposal", "gates", "report", "cause", "until", "items", "children", "parameters", "text", "auto"]
GATES = st.lists(st.dictionaries(st.sampled_from(["gate", "passed", "value"]), JSON, max_size=3), max_size=2)


@given(st.dictionaries(st.sampled_from(NAMES) | st.text(), JSON | GATES, max_size=4))
def test_every_event_has_words_whatever_its_data(data: dict[str, Any]) -> None:
    events = [
        ThreadEvent(thread_id="th_1", seq=at, kind=kind, actor=Actor.agent("a"), at=0.0, data=data, command_id=str(at))
        for at, kind in enumerate([*KINDS, "of_a_newer_version"])
    ]
    for event in events:  # by itself, each is the end of a log, which is always shown
        (entry,) = entries_of([event])
        assert all(one.what for one in entry.said)
    assert len(entries_of(events)) >= len(events) - 2


def test_every_phase_question_and_answer_has_words() -> None:
    assert {*PHASES} == {phase.value for phase in Phase}
    assert {*QUESTIONS} == {*get_args(CardKind)}
    assert {*ANSWERS} == {*get_args(AnswerName)}
