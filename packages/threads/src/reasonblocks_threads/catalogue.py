"""The catalogue of actions, with the validation of their parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticUserError

from reasonblocks.exceptions import ConfigError

from .ports import Offered
from .values import GRADES, Amplifier, Execution, Report, Risk, Thread, digest

Source: TypeAlias = Literal["run_id", "thread_id", "org_id"]
"""A value of the thread to which a parameter is bound."""
Precondition: TypeAlias = Callable[[Any, Thread], str | None]
"""Returns None if an action can run now, or a sentence why it cannot."""

DEADLINE_S = 120.0
ERRORS_SHOWN = 3
ERROR_CHARS = 400
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")
_SOURCES: tuple[Source, ...] = get_args(Source)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionSpec:
    """The description of an action as plain data, for processes without its code.

    `schema` is the JSON schema of its parameters. `version` is a hash of all other fields.
    """

    name: str
    kind: str = "call"
    purpose: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    risk: Risk = field(default_factory=Risk)
    auto: bool = False
    review: bool = False
    idempotent: bool = False
    deadline_s: float = DEADLINE_S
    bind: Mapping[str, Source] = field(default_factory=dict)
    version: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        for name, value, rule in _faults(self):
            raise ConfigError(f"action {self.name!r}: {name}", value, rule)
        object.__setattr__(self, "version", digest(_plain(self)))


def _faults(spec: ActionSpec) -> Iterable[tuple[str, object, str]]:
    if not _is_name(spec.name):
        yield "name", spec.name, "must begin with a letter and have at most 64 letters, digits, '.', '_' or '-'"
    for grade in (spec.risk.irreversibility, spec.risk.regret):
        if grade not in GRADES:
            yield "risk", grade, f"must be one of {', '.join(GRADES)}"
    if unknown := sorted(set(spec.risk.amplifiers) - {*get_args(Amplifier)}):
        yield "risk", unknown[0], f"must be one of {', '.join(get_args(Amplifier))}"
    if spec.auto and is_grave(spec.risk):
        yield "auto", True, "is not allowed for an action with high irreversibility or an amplifier"
    if not isfinite(spec.deadline_s) or spec.deadline_s <= 0:
        yield "deadline_s", spec.deadline_s, "must be a finite number of seconds above 0"
    for name, source in spec.bind.items():
        if name not in spec.schema.get("properties", {}):
            yield "bind", name, "is not a parameter of the model"
        if source not in _SOURCES:
            yield "bind", source, f"must be one of {', '.join(_SOURCES)}"


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.match(value) is not None


def is_grave(risk: Risk) -> bool:
    """Return True for a risk that always requires a person."""
    return bool(risk.amplifiers) or risk.irreversibility not in ("low", "medium")


def _plain(spec: ActionSpec) -> dict[str, Any]:
    """Return all fields of a spec as plain JSON."""
    return {
        "name": spec.name,
        "kind": spec.kind,
        "purpose": spec.purpose,
        "schema": dict(spec.schema),
        "risk": {
            "irreversibility": spec.risk.irreversibility,
            "regret": spec.risk.regret,
            "amplifiers": sorted(spec.risk.amplifiers),
        },
        "auto": spec.auto,
        "review": spec.review,
        "idempotent": spec.idempotent,
        "deadline_s": float(spec.deadline_s),
        "bind": dict(spec.bind),
    }


def spec_json(spec: ActionSpec) -> str:
    """Return the spec as JSON."""
    return json.dumps(_plain(spec), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def spec_of(text: str) -> ActionSpec:
    """Return the spec that `spec_json` wrote. Raises ValueError for anything else."""
    try:
        data = json.loads(text)
        risk = data.pop("risk")
        flags = {name: data.pop(name) for name in ("auto", "review", "idempotent")}
        if not all(isinstance(value, bool) for value in flags.values()):
            raise ValueError("a flag is not a boolean")
        if not isinstance(data["schema"].get("properties", {}), dict):
            raise ValueError("the schema has no properties")
        amplifiers = frozenset(risk.pop("amplifiers"))
        return ActionSpec(risk=Risk(amplifiers=amplifiers, **risk), **flags, **data)
    except (AttributeError, KeyError, TypeError) as exc:
        raise ValueError(f"this is no description of an action: {exc!r}") from exc


@dataclass(frozen=True, slots=True)
class Action:
    """An action that a person or a policy may approve: a function of its validated parameters and the `Execution`.

    The risk is stated here, never in a proposal. `auto=True` allows policies to approve the action without a person; it
    is not allowed with high irreversibility or an amplifier. `review=True` asks a person to review the outcome. An
    `idempotent` action may be repeated after a crash. `bind` sets parameters to values of the thread, whatever the
    proposal contains. Raises `ConfigError` for invalid or contradictory settings.
    """

    name: str
    parameters: type[BaseModel]
    run: Callable[[Any, Execution], Report]
    _: KW_ONLY
    purpose: str = ""
    risk: Risk = field(default_factory=Risk)
    auto: bool = False
    review: bool = False
    idempotent: bool = False
    deadline_s: float = DEADLINE_S
    bind: Mapping[str, Source] = field(default_factory=dict)
    preconditions: Sequence[Precondition] = ()
    kind: str = "call"
    spec: ActionSpec = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.run):
            raise ConfigError(f"action {self.name!r}: run", self.run, "must be a function (parameters, execution)")
        stated: Any = self.risk
        if not isinstance(stated, Risk) or isinstance(stated.amplifiers, str):
            rule = "must be a Risk, whose amplifiers are a set such as {'cost'}"
            raise ConfigError(f"action {self.name!r}: risk", self.risk, rule)
        risk = Risk(
            irreversibility=self.risk.irreversibility,
            regret=self.risk.regret,
            amplifiers=frozenset(self.risk.amplifiers),
        )
        spec = ActionSpec(
            name=self.name, kind=self.kind, purpose=self.purpose, schema=_schema(self.name, self.parameters), risk=risk,
            auto=self.auto, review=self.review, idempotent=self.idempotent, deadline_s=self.deadline_s,
            bind=dict(self.bind),
        )  # fmt: skip
        object.__setattr__(self, "risk", risk)
        object.__setattr__(self, "spec", spec)

    def checked(self, parameters: Mapping[str, object]) -> BaseModel | str:
        """Return the parameters as an instance of the model, or a sentence why they are invalid."""
        try:
            return self.parameters.model_validate_json(json.dumps(parameters, allow_nan=False), strict=True)
        except ValidationError as exc:
            return _sentence(self.name, exc)
        except Exception as exc:  # noqa: BLE001 - a validator of the caller's may raise anything
            return f"the parameters of {self.name!r} could not be checked: {type(exc).__name__}"


def _schema(name: str, model: object) -> Mapping[str, Any]:
    """Return the JSON schema of a model with its own properties at the top."""
    rule = "must be a pydantic model whose fields JSON can hold"
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise ConfigError(f"action {name!r}: parameters", model, rule)
    try:
        schema = model.model_json_schema()
    except PydanticUserError as exc:
        raise ConfigError(f"action {name!r}: parameters", model, rule) from exc
    own = next(iter(schema.get("allOf", ())), schema)  # pydantic before 2.9 puts the reference into a list
    if "$ref" in own:  # a model that contains itself
        schema = {**schema["$defs"][own["$ref"].rpartition("/")[2]], "$defs": schema["$defs"]}
    if schema.get("type") != "object":
        raise ConfigError(f"action {name!r}: parameters", model, "must be a model with named fields")
    plain: Mapping[str, Any] = json.loads(json.dumps({"properties": {}, **schema}))
    return plain


def _sentence(name: str, exc: ValidationError) -> str:
    errors = exc.errors(include_url=False, include_context=False, include_input=False)
    shown = [f"{'.'.join(map(str, error['loc'])) or name}: {error['msg']}" for error in errors[:ERRORS_SHOWN]]
    more = f" (and {len(errors) - ERRORS_SHOWN} more)" if len(errors) > ERRORS_SHOWN else ""
    return f"invalid parameters of {name!r}: {'; '.join(shown)}{more}"[:ERROR_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An action with its parameters exactly as it would run in a thread. An approval names its `hash`.

    `checked` is False if this process does not have the action, so that only the names of parameters were checked.
    """

    action: str
    parameters: Mapping[str, object]
    hash: str
    spec: ActionSpec
    checked: bool


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The actions that this process knows: the specs of all, and the code of its `own`."""

    specs: Mapping[str, ActionSpec] = field(default_factory=lambda: MappingProxyType({}))
    own: Mapping[str, Action] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, actions: Iterable[Action] = (), described: Iterable[str] = ()) -> Catalogue:
        """Return the catalogue of own actions, and of those that other processes `described` with `spec_json`.

        An own action replaces a described one. A description that this version cannot read is skipped. Raises
        `ConfigError` for a name that occurs twice.
        """
        own: dict[str, Action] = {}
        for action in actions:
            if action.name in own:
                raise ConfigError("actions", action.name, "is the name of two actions")
            own[action.name] = action
        specs = {spec.name: spec for spec in filter(None, map(_readable, described))}
        return cls({**specs, **{name: action.spec for name, action in own.items()}}, own)

    def bind(self, name: object, parameters: object, thread: Thread) -> Bound | str:
        """Return the action as it would run in this thread, or a sentence why it cannot."""
        spec = self.specs.get(name) if isinstance(name, str) else None
        if spec is None:
            return f"there is no action {str(name)[:64]!r}; known: {', '.join(sorted(self.specs)) or 'none'}"
        try:
            put = _put_in(spec, parameters, thread)
        except RecursionError:
            return f"the parameters of {spec.name!r} are nested too deeply"
        if isinstance(put, str):
            return put
        own = self.own.get(spec.name)
        if own and isinstance(why := own.checked(put), str):
            return why
        shown = {"action": spec.name, "parameters": put, "run": thread.cause.run_id, "version": spec.version}
        return Bound(action=spec.name, parameters=put, hash=digest(shown), spec=spec, checked=own is not None)

    def offered(self, thread: Thread) -> tuple[Offered, ...]:
        """Return the actions for an inferencer, without the bound parameters."""
        return tuple(
            Offered(name=name, purpose=spec.purpose, schema=_open_schema(spec), unavailable=_unavailable(spec, thread))
            for name, spec in sorted(self.specs.items())
        )

    def preconditions(self, bound: Bound, thread: Thread) -> tuple[Mapping[str, object], ...] | None:
        """Check all preconditions: each as `{"name", "ok", "detail"}`. None if this process does not have the action.

        It calls functions of the caller, so pure rules must not use it. A function that raises counts as failed.
        """
        own = self.own.get(bound.action)
        checked = own and own.checked(bound.parameters)
        if own is None or not isinstance(checked, BaseModel):
            return None
        return tuple(_judged(precondition, checked, thread) for precondition in own.preconditions)

    def failed_preconditions(self, bound: Bound, thread: Thread) -> tuple[str, ...]:
        """Return a sentence for each precondition that does not hold."""
        found = self.preconditions(bound, thread)
        if found is None:
            return (f"the preconditions of {bound.action!r} cannot be checked in this process",)
        return tuple(str(each["detail"]) for each in found if not each["ok"])


def _readable(text: str) -> ActionSpec | None:
    try:
        return spec_of(text)
    except ValueError:
        return None


def _put_in(spec: ActionSpec, parameters: object, thread: Thread) -> dict[str, object] | str:
    """Return parameters with the bound values and the defaults of the schema, or a sentence why they are not valid.

    It depends only on the spec, so that processes with and without the code of the action compute the same hash.
    """
    try:
        given = json.loads(json.dumps(parameters, allow_nan=False))
    except (TypeError, ValueError):
        given = None
    if not isinstance(given, dict):
        return f"the parameters of {spec.name!r} are not an object of plain JSON"
    properties: Mapping[str, Any] = spec.schema.get("properties", {})
    if (unknown := _unknown(given, spec.schema, spec.schema.get("$defs", {}))) is not None:
        known = ", ".join(name for name in properties if name not in spec.bind) or "none"
        return f"{spec.name!r} has no parameter {unknown[:64]!r}; it has: {known}"
    values = {name: value for name, value in given.items() if name not in spec.bind}
    values |= {name: value for name, source in spec.bind.items() if (value := _value(source, thread)) is not None}
    for name, about in properties.items():
        if name not in values and isinstance(about, Mapping) and "default" in about:
            values[name] = about["default"]
    if missing := [name for name in spec.schema.get("required", ()) if name not in values]:
        why = _unavailable(spec, thread)
        return f"{spec.name!r} is not available: {why}" if why else f"{spec.name!r} needs the parameter {missing[0]!r}"
    return {name: values[name] for name in [*properties, *values] if name in values}


def _unknown(value: object, schema: Any, defs: Mapping[str, Any], place: str = "") -> str | None:
    """Return the first key, at any depth, that the schema does not have: a model would drop it without a word."""
    shapes = [shape for shape in _shapes(schema, defs) if shape.get("type") == _SHAPES.get(type(value))]
    if not shapes:
        return None
    found = [_unknown_in(value, shape, defs, place) for shape in shapes]
    return None if None in found else found[0]


_SHAPES: Mapping[type, str] = {dict: "object", list: "array"}


def _unknown_in(value: object, shape: Mapping[str, Any], defs: Mapping[str, Any], place: str) -> str | None:
    known, others = shape.get("properties", {}), shape.get("additionalProperties", "properties" not in shape)
    parts: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        parts = value.items()
        if unknown := [name for name in value if name not in known and others is False]:
            return f"{place}{unknown[0]}"
    elif isinstance(value, list):
        parts, others = enumerate(value), shape.get("items", {})
    below = (_unknown(part, known.get(name, others), defs, f"{place}{name}.") for name, part in parts)
    return next((each for each in below if each is not None), None)


def _shapes(schema: Any, defs: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the schemas that a value may have, without references and alternatives."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        yield from _shapes(defs.get(str(schema["$ref"]).rpartition("/")[2]), defs)
    for name in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(name, ()):
            yield from _shapes(each, defs)
    if "type" in schema:
        yield schema


def _value(source: Source, thread: Thread) -> str | None:
    return {"run_id": thread.cause.run_id, "thread_id": thread.id, "org_id": thread.org_id}[source]


def _unavailable(spec: ActionSpec, thread: Thread) -> str | None:
    """Return why no proposal could make the action possible in this thread."""
    required = spec.schema.get("required", ())
    lacking = [source for name, source in spec.bind.items() if name in required and _value(source, thread) is None]
    return "the thread has no run" if lacking else None


def _open_schema(spec: ActionSpec) -> Mapping[str, object]:
    properties = {name: about for name, about in spec.schema.get("properties", {}).items() if name not in spec.bind}
    required = [name for name in spec.schema.get("required", ()) if name not in spec.bind]
    return {**spec.schema, "properties": properties, "required": required, "additionalProperties": False}


def _judged(precondition: Precondition, parameters: BaseModel, thread: Thread) -> Mapping[str, object]:
    name = getattr(precondition, "__name__", type(precondition).__name__)
    try:
        why = precondition(parameters, thread)
    except Exception as exc:  # noqa: BLE001 - what cannot be checked has failed
        why = f"the check {name!r} raised {type(exc).__name__}"
    ok = why is None
    return {"name": name, "ok": ok, "detail": "" if ok else str(why)[:ERROR_CHARS]}
