"""The codec of threads: the plain JSON of each value in logs, heads and cards, and the strict way back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from reasonblocks.util.json import compact

from .phases import Phase, RunStatus, Stage
from .policy import policy_json, policy_of
from .values import JSON, Approval, Budget, Card, Carved, Cause, Evidence, Malformed, Proposal, Report, Thread
from .values.json_values import Cost, Count, Flag, Number, Text, Words

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

FOLD_VERSION = 1
"""A head of another version is folded anew from the log."""


def size(value: Any) -> int:
    """Return the bytes of a value of plain JSON."""
    return len(compact(value).encode("utf-8", "surrogatepass"))


def encode(value: DataclassInstance) -> JSON:
    """Return a value as plain JSON: its fields in their order, which is that of what is stored."""
    found = {name: _encoded(getattr(value, name)) for name in _names(type(value))}
    return _trimmed(found) if isinstance(value, Evidence) else found


def _trimmed(evidence: JSON) -> JSON:
    """Return evidence without `blob` and `private` if it is public, as most of it is: a head has many pieces."""
    return {name: value for name, value in evidence.items() if value is not None and value is not False}


@cache
def _names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.compare)  # a function is no part of a value


def _encoded(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_encoded(each) for each in value]
    if isinstance(value, Mapping):
        return dict(value)
    return encode(value) if is_dataclass(value) and not isinstance(value, type) else value


class Decoder(Generic[T]):
    """Reads values of a type from plain JSON, strictly. It is built at its first use, because that takes a while."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    @cached_property
    def adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._kind)

    def __call__(self, data: Mapping[str, Any], name: str, *default: T) -> T:
        """Return the value of a field, the default if the field is missing. Raises `Malformed`."""
        return self.of(data.get(name, *default), name)

    def of(self, value: object, name: str) -> T:
        """Return the value. Raises `Malformed`, which calls it by this name."""
        try:
            return self.adapter.validate_python(value)
        except ValidationError as exc:
            raise _malformed(exc, name) from exc


def _malformed(exc: ValidationError, name: str) -> Malformed:
    fault = exc.errors(include_url=False)[0]
    place = ".".join((name, *map(str, fault["loc"])))
    why = fault["msg"].removeprefix("Value error, ")
    return Malformed(
        f"{place} is missing" if fault["type"] == "missing" else f"{place} is {fault['input']!r:.80}: {why}"
    )


def _present(value: object) -> object:
    """Return a proposal's fields without those that are null; a missing confidence is 0, which no gate passes."""
    if not isinstance(value, Mapping):
        return value
    return {"confidence": 0.0, **{name: each for name, each in value.items() if each is not None}}


def _check_body(proposal: Proposal) -> Proposal:
    stage, body = proposal.stage, proposal.body
    if stage is not Stage.ACTION or "action" not in body:
        if not words(body, "question" if stage is Stage.ACTION else "text").strip():
            needed = "an action or a question" if stage is Stage.ACTION else "a text"
            raise Malformed(f"a proposal of the stage {stage.value!r} needs {needed}")
    else:
        text(body, "action")
        mapping(body, "parameters", {})
        if "question" in body:
            raise Malformed("a proposal names an action or asks a question, not both")
    return proposal


_Proposal = Annotated[Proposal, BeforeValidator(_present), AfterValidator(_check_body)]
_List = BeforeValidator(lambda value: () if value is None else value)

text: Decoder[str] = Decoder(Text)
words: Decoder[str] = Decoder(Words)
"""A text, "" for null and a missing one."""
maybe_text: Decoder[str | None] = Decoder(Text | None)
texts: Decoder[tuple[str, ...]] = Decoder(Annotated[tuple[Text, ...], _List])
number: Decoder[float] = Decoder(Number)
cost: Decoder[float] = Decoder(Cost)
count: Decoder[int] = Decoder(Count)
flag: Decoder[bool] = Decoder(Flag)
mapping: Decoder[Mapping[str, Any]] = Decoder(Mapping[str, Any])
items: Decoder[tuple[Any, ...]] = Decoder(Annotated[tuple[Any, ...], _List])
mappings: Decoder[tuple[Mapping[str, Any], ...]] = Decoder(Annotated[tuple[Mapping[str, Any], ...], _List])
phase: Decoder[Phase] = Decoder(Phase)
stage: Decoder[Stage] = Decoder(Stage)
run: Decoder[RunStatus] = Decoder(RunStatus)
rule: Decoder[Literal["all_of", "alternatives"]] = Decoder(Literal["all_of", "alternatives"])
carved: Decoder[Budget] = Decoder(Carved)
evidence: Decoder[tuple[Evidence, ...]] = Decoder(Annotated[tuple[Evidence, ...], _List])
cause: Decoder[Cause] = Decoder(Cause)
proposal: Decoder[Proposal] = Decoder(_Proposal)
proposals: Decoder[tuple[Proposal, ...]] = Decoder(Annotated[tuple[_Proposal, ...], _List])
approval: Decoder[Approval] = Decoder(Approval)
report: Decoder[Report] = Decoder(Report)
_thread: Decoder[Thread] = Decoder(Thread)
_card: Decoder[Card] = Decoder(Card)


def head_json(thread: Thread) -> str:
    """Return the head as compact JSON, of at most 32 KB, without its fields that are null or empty lists."""
    found: JSON = {"fold": FOLD_VERSION, **_thread.adapter.dump_python(thread, mode="json", warnings=False)}
    found["policy"] = policy_json(thread.policy)
    found["proposals"] = [*found["proposals"].values()]
    found["evidence"] = [*map(_trimmed, found["evidence"])]
    found["children"] = [f"{each.id} {each.ended.value}" if each.ended else each.id for each in thread.children]
    if thread.approved and thread.execution and thread.approved.parameters == thread.execution.parameters:
        del found["execution"]["parameters"]
    return compact({name: value for name, value in found.items() if value is not None and value != []})


def head_of(stored: str) -> Thread:
    """Return the thread of a stored head. Raises ValueError for one of another fold version: fold its log anew."""
    try:
        found = {**mapping.of(json.loads(stored), "the head")}
    except RecursionError as exc:
        raise Malformed("the head is nested too deeply") from exc
    if found.get("fold") != FOLD_VERSION:
        raise Malformed(f"the head is of the fold version {found.get('fold')!r}, not {FOLD_VERSION}")
    if not text(found, "id"):
        raise Malformed("the head has no id")
    found["policy"] = policy_of(found.get("policy"))
    found["proposals"] = {each.stage: each for each in proposals(found, "proposals")}
    found["children"] = [_child(each) for each in texts(found, "children")]
    if found.get("last") is not None:
        found["last"] = proposal(found, "last")
    approved, execution = found.get("approved"), found.get("execution")
    if isinstance(execution, dict) and isinstance(approved, dict):
        found["execution"] = {"parameters": approved.get("parameters"), **execution}
    return _thread.of(found, "the head")


def _child(stored: str) -> JSON:
    """Return a child, which a head stores as one text, because it may have many: its id, and the phase of its end."""
    id, _, ended = stored.partition(" ")
    return {"id": id, "ended": ended or None}


def card_json(card: Card) -> str:
    if isfinite(card.budget.usd):  # pydantic's JSON would lose another
        try:
            return _card.adapter.dump_json(card).decode()
        except PydanticSerializationError:  # an unpaired surrogate
            pass
    return json.dumps(_card.adapter.dump_python(card, mode="json"))


def card_of(stored: str) -> Card:
    """Return a stored card. Raises ValueError."""
    try:
        return _card.adapter.validate_json(stored)
    except ValidationError:  # an unpaired surrogate
        return _card.adapter.validate_python(json.loads(stored))


def blobs_of(value: object) -> Iterator[str]:
    """Yield the names of the private texts in plain JSON."""
    if isinstance(value, Mapping):
        if isinstance(name := value.get("blob"), str):
            yield name
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from blobs_of(each)
