"""The catalogue: settings that contradict each other, actions known by their description, and bound parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator

from reasonblocks.exceptions import ConfigError
from reasonblocks_threads.catalogue import Action, ActionSpec, Bound, Catalogue, spec_json, spec_of
from reasonblocks_threads.phases import Phase, Stage
from reasonblocks_threads.policy import PLAN_THEN_REVIEW
from reasonblocks_threads.values import Cause, Execution, Report, Risk, Thread
from tests.whole import QUICK_EXAMPLES, WHOLE


class Region(str, Enum):
    EU = "eu"
    US = "us"


class Deploy(BaseModel):
    service: str
    version: str = "latest"
    count: int = Field(default=1, ge=1, le=9)
    region: Region = Region.EU
    run: str


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    service: str


class Tree(BaseModel):
    name: str
    below: list[Tree] = []


class Nested(BaseModel):
    one: Tree | None = None
    some: list[Tree] = []
    named: dict[str, Tree] = {}
    either: Tree | list[int] | None = None
    any: dict[str, Any] = {}
    loose: Loose | None = None


class Broken(BaseModel):
    service: str

    @field_validator("service")
    @classmethod
    def look_up(cls, value: str) -> str:
        raise LookupError(value)


def done(parameters: Any, execution: Execution) -> Report:
    return Report.ok()


def opened(run_id: str | None = "run-1") -> Thread:
    cause = Cause(kind="proposal", key="k", title="Deploy?", run_id=run_id)
    return Thread(
        id="th_1", org_id="default", cause=cause, phase=Phase.PROPOSED, stage=Stage.INTENT, version=2, entered=2,
        entered_at=0.0, opened_at=0.0, policy=PLAN_THEN_REVIEW,
    )  # fmt: skip


DEPLOY = Action("deploy", Deploy, done, bind={"run": "run_id"}, purpose="Deploys a service.")
HERE = Catalogue.of([DEPLOY])
ELSEWHERE = Catalogue.of(described=[spec_json(DEPLOY.spec)])
"""The same catalogue in a process without the code."""


def bound(catalogue: Catalogue, parameters: object, name: str = "deploy", thread: Thread | None = None) -> Bound:
    found = catalogue.bind(name, parameters, thread or opened())
    assert isinstance(found, Bound), found
    return found


def refused(catalogue: Catalogue, parameters: object, name: object = "deploy", thread: Thread | None = None) -> str:
    found = catalogue.bind(name, parameters, thread or opened())
    assert isinstance(found, str)
    return found


WRONG: dict[str, Callable[[], Action]] = {
    "name": lambda: Action("two words", Deploy, done),
    "auto": lambda: Action("a", Deploy, done, auto=True, risk=Risk(irreversibility="high")),
    "auto ": lambda: Action("a", Deploy, done, auto=True, risk=Risk(amplifiers={"cost"})),  # type: ignore[arg-type]
    "bind": lambda: Action("a", Deploy, done, bind={"place": "run_id"}),
    "bind ": lambda: Action("a", Deploy, done, bind={"run": "secret"}),  # type: ignore[dict-item]
    "parameters": lambda: Action("a", dict, done),  # type: ignore[arg-type]
    "parameters ": lambda: Action("a", RootModel[int], done),
    "run": lambda: Action("a", Deploy, "done"),  # type: ignore[arg-type]
    "deadline_s": lambda: Action("a", Deploy, done, deadline_s=math.nan),
    "risk": lambda: Action("a", Deploy, done, risk=Risk(regret="awful")),  # type: ignore[arg-type]
    "risk ": lambda: Action("a", Deploy, done, risk=Risk(amplifiers={"noise"})),  # type: ignore[arg-type]
    "risk  ": lambda: Action("a", Deploy, done, risk="high"),  # type: ignore[arg-type]
    "risk   ": lambda: Action("a", Deploy, done, risk=Risk(amplifiers="cost")),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("setting", WRONG)
def test_a_wrong_setting_of_an_action_is_an_error_at_once(setting: str) -> None:
    with pytest.raises(ConfigError) as caught:
        WRONG[setting]()
    assert caught.value.name.endswith(f": {setting.strip()}")


def test_a_model_that_json_cannot_describe_is_refused() -> None:
    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        what: Callable[[], None]

    with pytest.raises(ConfigError, match="whose fields JSON can hold"):
        Action("a", Odd, done)


def test_a_name_occurs_once() -> None:
    with pytest.raises(ConfigError, match="two actions"):
        Catalogue.of([DEPLOY, DEPLOY])


def test_amplifiers_may_be_a_plain_set() -> None:
    action = Action("a", Deploy, done, risk=Risk(amplifiers={"cost", "data_loss"}))  # type: ignore[arg-type]
    assert action.risk.amplifiers == action.spec.risk.amplifiers == frozenset({"cost", "data_loss"})


@settings(max_examples=100 if WHOLE else QUICK_EXAMPLES, deadline=None)
@given(st.data())
def test_a_description_survives_json(data: st.DataObject) -> None:
    spec = ActionSpec(
        name="deploy",
        kind=data.draw(st.text(max_size=5)),
        purpose=data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
        schema=DEPLOY.spec.schema,
        risk=Risk(irreversibility="low", regret=data.draw(st.sampled_from(["low", "medium", "high"]))),
        auto=data.draw(st.booleans()),
        review=data.draw(st.booleans()),
        idempotent=data.draw(st.booleans()),
        deadline_s=data.draw(st.floats(0.1, 1e6)),
        bind={"run": "run_id"},
    )
    again = spec_of(spec_json(spec))
    assert again == spec
    assert again.version == spec.version


NO_PROPERTIES = json.dumps({**json.loads(spec_json(DEPLOY.spec)), "schema": {"properties": 3}})


@pytest.mark.parametrize("broken", ["", "3", "{}", "[]", NO_PROPERTIES, '{"name": "a"}'])
def test_a_broken_description_is_a_value_error_and_is_left_out(broken: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        spec_of(broken)
    assert Catalogue.of(described=[broken]).specs == {}


def test_a_description_cannot_state_what_no_action_may() -> None:
    data = json.loads(spec_json(DEPLOY.spec))
    data["auto"], data["risk"]["irreversibility"] = True, "high"
    assert Catalogue.of(described=[json.dumps(data)]).specs == {}
    data["auto"] = "no"
    assert Catalogue.of(described=[json.dumps(data)]).specs == {}


def test_any_change_of_an_action_changes_its_version() -> None:
    changed = [
        Action("deploy", Deploy, done, bind={"run": "run_id"}, purpose="Deploys a service.", **{name: value})  # type: ignore[arg-type]
        for name, value in {
            "review": True, "auto": True, "idempotent": True, "deadline_s": 3, "risk": Risk(regret="low"), "kind": "k",
        }.items()
    ]  # fmt: skip
    assert len({action.spec.version for action in [DEPLOY, *changed]}) == 7


def test_bound_values_replace_what_was_proposed_and_defaults_are_shown() -> None:
    found = bound(HERE, {"service": "web", "run": "another run"})
    shown = {"service": "web", "version": "latest", "count": 1, "region": "eu", "run": "run-1"}
    assert [*found.parameters.items()] == [*shown.items()]
    assert found.checked


def test_the_hash_is_the_same_in_a_process_without_the_code() -> None:
    here, there = bound(HERE, {"service": "web"}), bound(ELSEWHERE, {"service": "web"})
    assert (there.hash, there.parameters) == (here.hash, here.parameters)
    assert not there.checked


def test_the_hash_covers_parameters_run_and_version() -> None:
    other = Action("deploy", Deploy, done, bind={"run": "run_id"}, purpose="Another purpose.")
    hashes = {
        bound(HERE, {"service": "web"}).hash,
        bound(HERE, {"service": "api"}).hash,
        bound(HERE, {"service": "web"}, thread=opened("run-2")).hash,
        bound(Catalogue.of([other]), {"service": "web"}).hash,
    }
    assert len(hashes) == 4
    free = Catalogue.of([Action("tree", Tree, done)])
    runs = {bound(free, {"name": "a"}, "tree", opened(run)).hash for run in ("run-1", "run-2", None)}
    assert len(runs) == 3
    assert bound(HERE, dict(reversed([*bound(HERE, {"service": "web"}).parameters.items()]))).hash in hashes


@settings(max_examples=100 if WHOLE else QUICK_EXAMPLES, deadline=None)
@given(st.text(max_size=9), st.integers(1, 9), st.sampled_from(["eu", "us"]))
def test_binding_again_changes_nothing(service: str, count: int, region: str) -> None:
    found = HERE.bind("deploy", {"service": service, "count": count, "region": region}, opened())
    if isinstance(found, Bound):
        assert bound(HERE, found.parameters) == found
        checked = DEPLOY.checked(found.parameters)
        assert isinstance(checked, Deploy)
        assert (checked.service, checked.count, checked.region.value) == (service, count, region)


@pytest.mark.parametrize("catalogue", [HERE, ELSEWHERE], ids=["here", "elsewhere"])
def test_a_sentence_says_why_parameters_cannot_be_bound(catalogue: Catalogue) -> None:
    assert refused(catalogue, {}) == "'deploy' needs the parameter 'service'"
    assert "no parameter 'force'; it has: service, version" in refused(catalogue, {"service": "web", "force": True})
    assert "there is no action 'shell'; known: deploy" in refused(catalogue, {}, name="shell")
    assert "there is no action" in refused(catalogue, {}, name=None)
    assert "the thread has no run" in refused(catalogue, {"service": "web", "run": "mine"}, thread=opened(None))
    for odd in (None, [1], "text", {"service": math.nan}, {"service": object()}):
        assert refused(catalogue, odd) == "the parameters of 'deploy' are not an object of plain JSON"


@pytest.mark.parametrize(
    "wrong", [{"service": 3}, {"service": "web", "count": "2"}, {"service": "web", "count": 10}, {"service": "\ud800"}]
)
def test_values_are_checked_strictly_where_the_code_is(wrong: dict[str, object]) -> None:
    assert refused(HERE, {"service": "web", **wrong}).startswith("invalid parameters of 'deploy': ")
    assert not bound(ELSEWHERE, {"service": "web", **wrong}).checked


def test_a_model_may_allow_other_keys() -> None:
    catalogue = Catalogue.of([Action("loose", Loose, done)])
    assert bound(catalogue, {"service": "web", "more": 1}, "loose").parameters == {"service": "web", "more": 1}


NESTED: list[tuple[dict[str, object], str | None]] = [
    ({"one": {"name": "a", "x": 1}}, "one.x"),
    ({"some": [{"name": "a"}, {"name": "b", "x": 1}]}, "some.1.x"),
    ({"named": {"x": {"name": "a", "y": 1}}}, "named.x.y"),
    ({"either": {"name": "a", "x": 1}}, "either.x"),
    ({"one": {"name": "a", "below": [{"name": "b", "x": 1}]}}, "one.below.0.x"),
    (
        {"either": None, "any": {"x": {"y": 1}}, "named": {"x": {"name": "a"}}, "loose": {"service": "web", "x": 1}},
        None,
    ),
    ({"either": [1, 2], "one": {"name": "a", "below": []}}, None),
]


@pytest.mark.parametrize(("parameters", "unknown"), NESTED)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_unknown_key_is_refused_at_any_depth(
    parameters: dict[str, object], unknown: str | None, elsewhere: bool
) -> None:
    action = Action("nested", Nested, done)
    catalogue = Catalogue.of(described=[spec_json(action.spec)]) if elsewhere else Catalogue.of([action])
    if unknown is None:
        assert bound(catalogue, parameters, "nested").checked is not elsewhere
    else:
        assert f"no parameter {unknown!r}" in refused(catalogue, parameters, "nested")


def test_parameters_that_are_nested_without_end_are_a_sentence() -> None:
    catalogue, deep = Catalogue.of([Action("tree", Tree, done)]), {"name": "leaf"}
    for _ in range(400):
        deep = {"name": "branch", "below": [deep]}  # type: ignore[dict-item]
    assert "nested too deeply" in refused(catalogue, deep, "tree")


def test_a_model_that_contains_itself_is_described_by_any_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    ref, definitions = {"$ref": "#/$defs/Tree"}, Tree.model_json_schema()["$defs"]
    described = []
    for form in (ref, {"allOf": [ref]}):  # of pydantic 2.9, and of those before
        monkeypatch.setattr(Tree, "model_json_schema", lambda form=form: {**form, "$defs": definitions})
        described.append(Action("tree", Tree, done).spec.schema)
    assert described[0] == described[1]
    assert [*described[0]["properties"]] == ["name", "below"]


def test_a_check_that_raises_is_a_sentence() -> None:
    catalogue = Catalogue.of([Action("broken", Broken, done)])
    assert "could not be checked: LookupError" in refused(catalogue, {"service": "web"}, "broken")


def test_an_inferencer_sees_no_bound_parameter() -> None:
    for catalogue in (HERE, ELSEWHERE):
        (offered,) = catalogue.offered(opened())
        properties = offered.schema["properties"]
        assert isinstance(properties, dict)
        assert [*properties] == ["service", "version", "count", "region"]
        assert offered.schema["required"] == ["service"]
        assert (offered.name, offered.purpose, offered.unavailable) == ("deploy", "Deploys a service.", None)
        assert catalogue.offered(opened(None))[0].unavailable == "the thread has no run"


def test_preconditions_are_checked_with_the_validated_parameters() -> None:
    def exists(parameters: Deploy, thread: Thread) -> str | None:
        return None if parameters.service == "web" else f"there is no service {parameters.service}"

    def unreachable(parameters: Deploy, thread: Thread) -> str | None:
        raise OSError("no network")

    catalogue = Catalogue.of([Action("deploy", Deploy, done, preconditions=[exists, unreachable])])
    web, api = (bound(catalogue, {"service": name, "run": ""}) for name in ("web", "api"))
    assert catalogue.preconditions(web, opened()) == (
        {"name": "exists", "ok": True, "detail": ""},
        {"name": "unreachable", "ok": False, "detail": "the check 'unreachable' raised OSError"},
    )
    assert catalogue.failed_preconditions(api, opened())[0] == "there is no service api"


def test_preconditions_are_unknown_without_the_code() -> None:
    found = bound(ELSEWHERE, {"service": "web"})
    assert ELSEWHERE.preconditions(found, opened()) is None
    assert "cannot be checked" in ELSEWHERE.failed_preconditions(found, opened())[0]
    assert HERE.preconditions(found, opened()) == ()
    assert HERE.failed_preconditions(found, opened()) == ()
