"""Makes the forms of a card's answers, and reads what a person typed into one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from reasonblocks.util.folding import visible

from ._thread_words import exact
from ._visit import whole

if TYPE_CHECKING:
    from reasonblocks_threads import Answer, Card

Form: TypeAlias = Mapping[str, str]
"""The fields of a form as a browser sends them."""

MOST_FIELDS = 40
"""The most parameters that have fields of their own; all others are changed as JSON."""
PICKED = "pick"
"""The field of the action: one called "action" would hide the address of its form from scripts."""
TEXT_CHARS = 2_000
PERSON_CHARS = 200
JSON_CHARS = 20_000
STAGES = ("intent", "context", "action")
PUT_OFF: Mapping[str, str] = {
    "3600": "1 hour", "14400": "4 hours", "86400": "1 day", "259200": "3 days", "604800": "7 days",
}  # fmt: skip
"""The seconds for which a card can be put off."""
BUTTONS: Mapping[str, str] = {
    "accept": "Accept",
    "edit": "Save the correction",
    "redirect": "Ask again",
    "provide": "Send",
    "skip": "Drop the matter",
    "approve": "Run it exactly as shown",
    "reject": "Do not run it",
    "done": "Accept the outcome",
    "drop": "Close without accepting",
    "retry": "Try again",
    "accept_failure": "Leave it as it is",
    "take_over": "Hand over",
    "dismiss": "Close the matter",
    "clean_up": "Clean up",
    "later": "Ask later",
}
AGREEING = frozenset({"accept", "approve", "done", "provide", "retry"})
"""The answers whose buttons stand out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form. A "json" field holds JSON, a "choice" one of its `choices`, as value and words."""

    name: str
    label: str
    kind: Literal["text", "line", "json", "choice"]
    value: str = ""
    hint: str = ""
    required: bool = False
    most: int = TEXT_CHARS
    choices: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """The form of an answer. One `in_line` has only a reason; another one with fields is opened by its label."""

    name: str
    label: str
    button: str
    fields: Sequence[Field]
    is_agreeing: bool
    is_open: bool
    is_first: bool
    """True for an answer of this kind of card, False for one that many kinds have."""
    problem: str = ""

    @property
    def in_line(self) -> bool:
        return all(field.name == "reason" for field in self.fields)


class WrongField(ValueError):
    """A field that cannot be read. The text tells the person what to do."""


def forms_of(card: Card, first: Sequence[str], typed: Form | None = None, problem: str = "") -> list[AnswerForm]:
    """Return the forms of a card's answers; `first` are those of its kind.

    `typed` is the form of a refused answer, with the `problem`: it keeps what was typed.
    """
    refused = (typed or {}).get("answer", "")
    opens = next((answer.name for answer in card.answers if answer.name in first and answer.needs), "")
    return [
        AnswerForm(
            name=answer.name,
            label=answer.label,
            button=BUTTONS.get(answer.name, answer.label),
            fields=tuple(_fields(card, answer, typed if typed and refused == answer.name else {})),
            is_agreeing=answer.name in AGREEING,
            is_open=answer.name == (refused or opens),
            is_first=answer.name in first,
            problem=problem if refused == answer.name else "",
        )
        for answer in card.answers
    ]


def _fields(card: Card, answer: Answer, typed: Form) -> Iterator[Field]:
    makers = {
        "text": _words, "to": _line, "reason": _line, "stage": _stage, "until": _until, "action": _action,
        "parameters": _parameters,
    }  # fmt: skip
    order = ("to", "stage", "until", "parameters", "action", "text", "reason")
    known = {*answer.needs, *answer.takes}
    for name in (each for each in order if each in known):
        yield from makers[name](card, answer, name, typed)


LABELS: Mapping[tuple[str, str], str] = {
    ("edit", "text"): "The text as it should be",
    ("redirect", "text"): "What to do differently",
    ("provide", "text"): "What is missing",
    ("take_over", "to"): "The person or team that takes over",
}


def _words(card: Card, answer: Answer, name: str, typed: Form) -> Iterator[Field]:
    if card.kind == "consent" and answer.name == "edit":
        label, present = "Your reason", ""
    else:
        label = LABELS.get((answer.name, name), "Your words")
        present = visible(card.proposal) if answer.name == "edit" else ""
    yield Field(name=name, label=label, kind="text", value=typed.get(name, present), required=name in answer.needs)


def _line(card: Card, answer: Answer, name: str, typed: Form) -> Iterator[Field]:
    label = LABELS.get((answer.name, name), "Reason")
    most = PERSON_CHARS if name == "to" else TEXT_CHARS
    yield Field(
        name=name, label=label, kind="line", value=typed.get(name, ""), required=name in answer.needs, most=most
    )


def _stage(card: Card, answer: Answer, name: str, typed: Form) -> Iterator[Field]:
    upto = STAGES[: STAGES.index(card.stage.value) + 1]
    choices = [(stage, f"from the {stage}") for stage in reversed(upto)]
    yield Field(name=name, label="Begin again", kind="choice", value=typed.get(name, ""), choices=choices)


def _until(card: Card, answer: Answer, name: str, typed: Form) -> Iterator[Field]:
    yield Field(
        name=name, label="Ask again after", kind="choice", value=typed.get(name, "86400"), choices=[*PUT_OFF.items()]
    )


def _action(card: Card, answer: Answer, name: str, typed: Form) -> Iterator[Field]:
    others = [each for each in card.actions if each != card.action]
    if others:
        none = "keep this action" if answer.name == "edit" else "none, only the text"
        choices = [("", none), *((each, visible(each)) for each in others)]
        label = "Another action" if answer.name == "edit" else "Or choose an action"
        yield Field(name=PICKED, label=label, kind="choice", value=typed.get(PICKED, ""), choices=choices)
        yield Field(
            name="more", label="Its parameters", kind="json", value=typed.get("more", ""), most=JSON_CHARS,
            hint='as JSON, such as {"service": "web"}; leave it empty if there are none',
        )  # fmt: skip


def _parameters(card: Card, answer: Answer, name: str, typed: Form) -> Iterator[Field]:
    """Yield a field for each parameter of the proposed action."""
    if answer.name != "edit":
        return
    if len(card.parameters) > MOST_FIELDS:
        shown = typed.get("all", exact(card.parameters))
        yield Field(name="all", label="Parameters", kind="json", value=shown, most=JSON_CHARS, hint="as JSON")
        return
    for at, (key, value) in enumerate(card.parameters.items()):
        shown = typed.get(f"p{at}", _shown(value))
        kind: Literal["text", "json"] = "text" if _is_text(value) else "json"
        yield Field(name=f"p{at}", label=visible(key), kind=kind, value=shown, most=JSON_CHARS,
                    hint="" if kind == "text" else "as JSON")  # fmt: skip


def _is_text(value: object) -> bool:
    """Return True for a text that a browser sends back as it is."""
    return isinstance(value, str) and visible(value) == value


def _shown(value: object) -> str:
    return str(value) if _is_text(value) else exact(value)


def read_answer_form(card: Card, what: str, form: Form, now: float) -> dict[str, Any]:
    """Return the fields of an answer from its form. Raises `WrongField` for one that cannot be read."""
    answer = next((each for each in card.answers if each.name == what), None)
    known = {*answer.needs, *answer.takes} if answer else set()
    given: dict[str, Any] = {
        name: form[name] for name in ("text", "to", "stage", "reason") if name in known and form.get(name, "").strip()
    }
    if "action" in known and form.get(PICKED):
        given["action"] = form[PICKED]
    if "until" in known:
        given["until"] = now + _seconds(form.get("until", ""))
    if "parameters" in known:
        parameters = _json(form.get("more", ""), "the parameters")
        if what == "edit" and "action" not in given:
            parameters = {**_changed(card, form), **parameters}
        if parameters or "action" in given:
            given["parameters"] = parameters
    return given


def _changed(card: Card, form: Form) -> dict[str, Any]:
    """Return the parameters whose fields have another value than the card."""
    if "all" in form:
        found = _json(form["all"], "the parameters")
        return {
            key: value
            for key, value in found.items()
            if key not in card.parameters or not _same(value, card.parameters[key])
        }
    changed: dict[str, Any] = {}
    for at, (key, present) in enumerate(card.parameters.items()):
        typed = form.get(f"p{at}")
        if typed is not None and typed != _shown(present):
            changed[key] = _typed_text(typed, present) if isinstance(present, str) else _value(typed, visible(key))
    return changed


def _typed_text(typed: str, present: str) -> str:
    """Return a text that was typed in place of another one, which was shown as JSON if it has hidden characters."""
    if _is_text(present):
        return typed
    with suppress(ValueError, RecursionError):
        found = json.loads(typed)
        if isinstance(found, str):
            return found
    return typed


def _same(one: object, other: object) -> bool:
    return exact(one) == exact(other)


def _seconds(text: str) -> float:
    found = whole(text)
    if not found:
        raise WrongField("Choose when to show the card again.")
    return float(found)


def _json(text: str, what: str) -> dict[str, Any]:
    found = _value(text, what) if text.strip() else {}
    if not isinstance(found, dict):
        raise WrongField(f'{what} must be a JSON object, such as {{"service": "web"}}.')
    return found


def _value(text: str, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise WrongField(f'{what}: this is not valid JSON; a text needs quotes, as in "web".') from error


def _refuse(constant: str) -> object:
    raise ValueError(constant)
