"""Every setting is checked once, when the client is made, with its name in the message."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import reasonblocks
from reasonblocks import Budget, Escalate, HashEmbedder, LocalStore, Pattern, QdrantStore, ReasonBlocks
from reasonblocks.engine.fsm import DifficultyFSM
from reasonblocks.exceptions import BadAnswer, ConfigError, UnknownKeyword
from reasonblocks.options import Options
from reasonblocks.options.config import configure
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.types import JSON, FSMState, RunInfo, Step, StepInput
from tests.core.world import RecordingSink, client, pattern, run

VARIABLES = ("API_KEY", "BASE_URL", "HOME", "STRICT", "DISABLED")


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(f"REASONBLOCKS_{name}", raising=False)


class Mine:
    """A monitor of the caller's."""

    failure_type = "mine"

    def __init__(self, name: str) -> None:
        self.name = name

    def observe(self, step: Step, memory: JSON, run: RunInfo) -> tuple[float, JSON, tuple[int, ...]]:
        return 0.9, memory, ()


def to_normal(state: FSMState, history: tuple[float, ...]) -> FSMState:
    return FSMState.NORMAL


class Greedy:
    """A transition with a history limit of its own."""

    def __init__(self, history_limit: Any) -> None:
        self.history_limit = history_limit
        self.longest = 0

    def __call__(self, state: FSMState, history: tuple[float, ...]) -> FSMState:
        self.longest = max(self.longest, len(history))
        return FSMState.NORMAL


def budget(**given: Any) -> Budget:
    return Budget(**given)


def escalate(**given: Any) -> Escalate:
    return Escalate(**{"model": "strong", **given})


WRONG: list[tuple[str, Any]] = [
    ("api_key", 5),
    *[("org_id", value) for value in (None, "", 5)],
    *[("project_id", value) for value in (None, "", 5)],
    *[("fsm_thresholds", value) for value in ("fast", 5, [("fast_threshold", 0.1)])],
    *[("transition", value) for value in ("NORMAL", 5)],
    *[
        ("model_routing", value)
        for value in ("small", 5, {"INIT": "m"}, {"END": "m"}, {"fast": "m"}, {"SLOW": ""}, {"SLOW": None})
    ],
    *[("token_budget", value) for value in (0, -1, 1.5, "1000", True)],
    *[("budget", value) for value in (40, "automatic", {"calls": 4}, Budget())],
    *[("budget", budget(calls=value)) for value in (0, -1, 2.5, math.nan, "4", 2**63, True)],
    *[("budget", budget(tokens=value)) for value in (0, -1, 2.5, math.nan, True)],
    *[
        ("budget", budget(tools=value))
        for value in (5, {}, {"": 1}, {5: 1}, {"s": 0}, {"s": "9"}, {"s" * 101: 1}, {"\ud800": 1})
    ],
    ("budget", budget(calls=4, tools={f"t{at}": 1 for at in range(9)})),
    *[("budget", budget(cost_usd=value)) for value in (0, -1, math.nan, math.inf, "1", True, 10**7)],
    *[("budget", budget(seconds=value)) for value in (0, -1, math.nan, math.inf, "60", True, 10**9)],
    *[("budget", budget(calls=4, tell_at=value)) for value in (0.5, (0,), (1,), (math.nan,), ("half",), (0.5,) * 17)],
    *[("budget", budget(calls=4, land_at=value)) for value in (-1, 101, None, 1.5)],
    *[("budget", budget(calls=4, extend=value)) for value in (-1, None, 2**63)],
    *[("budget", value) for value in (budget(tokens=4, extend=2), budget(calls=4, every_call=1))],
    *[("escalate", value) for value in ("strong", {"model": "strong"}, Escalate(), escalate(model=""))],
    *[("escalate", escalate(effort=value)) for value in ("", 5)],
    *[("escalate", escalate(after=value)) for value in (-1, 1.5, None, math.nan, True, 10_001)],
    *[("escalate", escalate(dwell=value)) for value in (0, -1, 2.5, None, math.nan, True, 10_001)],
    *[("escalate", escalate(times=value)) for value in (0, -1, 2.5, None, "2", True, 10_001)],
    *[("task_profile", value) for value in (None, "", "codng", 5, ["coding"])],
    *[("weights", value) for value in (5, "x", {"semantic_lop": 0.1}, {"semantic_loop": "1"}, {"semantic_loop": True})],
    ("weights", {"semantic_loop": math.nan}),
    *[("monitors", value) for value in (5, "semantic_loop", None, [5], [object()], ["no_such_monitor"], [Mine("")])],
    *[("monitors", [Mine(name)]) for name in ("semantic_loop", "_suite", "m" * 101, "\x00" * 17, "a \ud800 half")],
    ("monitors", [Mine("twice"), Mine("twice")]),
    ("monitors", [Mine(f"m{at}") for at in range(5)]),
    *[("tool_roles", value) for value in (5, "edit", {"run": "tset"}, {"run": None}, {"run": ["test"]})],
    *[("scorer", value) for value in (0.5, "scorer")],
    *[
        ("calibration", value)
        for value in (5, {"difficulty_men": 0.1}, {"difficulty_mean": 2}, {"difficulty_spread": 0})
    ],
    ("calibration", {"difficulty_mean": math.nan}),
    *[("profile", value) for value in (5, "memroy", "", True)],
    *[("patience", value) for value in (4, "", "often", "4 of 6", "9 of 9")],
    *[("explore", value) for value in (-0.1, 1.5, "half", True, math.nan)],
    ("calibration", "/missing/agent.toml"),
    *[("pattern_store", value) for value in (5, object(), [pattern("e3-a")])],
    *[("embedder", value) for value in (5, object())],
    *[("e_traces_enabled", value) for value in (None, 1, "yes")],
    *[("e2_requires_signal", value) for value in (None, 0, "no")],
    *[("standing_rules", value) for value in (None, "always", True, ["run"])],
    *[("sinks", value) for value in (5, None, "runs.jsonl", RecordingSink(), [5], [object()])],
    *[("live_streaming_enabled", value) for value in ("no", 1, True)],
    *[
        ("base_url", value)
        for value in (5, b"http://host", "host", "host:8700", "ftp://host", "http://", "http://[bad")
    ],
    *[("base_url", value) for value in ("http://me:pw@host", "http://host?a=1", "http://host#a", "http://host:99999")],
    *[("base_url", value) for value in ("http://host/a b", "http://hóst", "http://host\n")],
    *[("redact", value) for value in (5, "x")],
    *[("placement", value) for value in (None, "user", 5, ["system"])],
    *[("mode", value) for value in (None, "watch", 5, ["observe"])],
    *[("on_injection", value) for value in (5, "drop")],
    *[("second_look", value) for value in (None, 1, "yes")],
    *[("advisor", value) for value in (5, "model", Mine, object())],
    *[("stop_when", value) for value in (5, "", "staled", "over_budget", ["stalled"])],
    *[("mailbox", value) for value in (5, object(), dict)],
    *[("operator_notes", value) for value in (None, 1, "yes")],
    *[("step_deadline_ms", value) for value in (0, -1, None, "800", True, math.inf, math.nan, 60_001)],
    *[("strict", value) for value in (1, "yes", 0)],
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda value: repr(value)[:50])
def test_a_wrong_argument_is_refused_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        ReasonBlocks(**{name: value})
    assert re.match(rf"(transition\.|tool_roles|calibration|weights|model_routing|fsm_)?{name}", str(caught.value))


async def _answer(*given: object) -> None: ...


class _Awaited:
    async def __call__(self, *given: object) -> None: ...


@pytest.mark.parametrize("name", ["on_injection", "stop_when"])
@pytest.mark.parametrize("value", [_answer, _Awaited()])
def test_a_coroutine_function_is_refused_where_its_answer_decides(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match="not awaited"):
        ReasonBlocks(**{name: value})


def test_every_argument_has_a_wrong_value_above() -> None:
    import inspect

    arguments = set(inspect.signature(ReasonBlocks).parameters)
    assert arguments == {name for name, _ in WRONG}


def test_an_unknown_argument_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownKeyword, match="did you mean 'fsm_thresholds'"):
        ReasonBlocks(fsm_treshold=0.1)  # type: ignore[call-arg]  # the point


def test_a_positional_argument_is_refused_unseen() -> None:
    with pytest.raises(TypeError, match=r"^ReasonBlocks takes keyword arguments only, and 1 positional were given$"):
        ReasonBlocks("key")  # type: ignore[call-arg]  # the point


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ({"fsm_thresholds": {"fast_treshold": 0.1}}, "fast_threshold"),
        ({"model_routing": {"NORMALE": "m"}}, "NORMAL"),
        ({"model_routing": {"slow": "m"}}, "SLOW"),
        ({"task_profile": "codng"}, "coding"),
        ({"weights": {"semantic_lop": 0.1}}, "semantic_loop"),
        ({"tool_roles": {"run": "tset"}}, "test"),
        ({"calibration": {"difficulty_men": 0.1}}, "difficulty_mean"),
        ({"standing_rules": "first_cal"}, "first_call"),
        ({"placement": "systm"}, "system"),
        ({"mode": "obsreve"}, "observe"),
        ({"stop_when": "staled"}, "stalled"),
        ({"profile": "memroy"}, "memory"),
    ],
)
def test_an_unknown_name_comes_with_the_nearest_valid_one(given: dict[str, Any], nearest: str) -> None:
    with pytest.raises(ConfigError, match=f"did you mean '{nearest}'"):
        ReasonBlocks(**given)


def test_an_unknown_state_in_the_routing_comes_with_the_valid_ones() -> None:
    with pytest.raises(ConfigError, match="FAST, NORMAL, SKIP, SLOW"):
        ReasonBlocks(model_routing={"XYZ": "m"})


def test_a_transition_excludes_thresholds() -> None:
    with pytest.raises(ConfigError, match="transition"):
        ReasonBlocks(transition=to_normal, fsm_thresholds={"fast_threshold": 0.1})


def test_a_store_excludes_an_embedder() -> None:
    with pytest.raises(ConfigError, match="embedder"):
        ReasonBlocks(pattern_store=LocalStore(), embedder=HashEmbedder())


def rules_told(rb: ReasonBlocks) -> tuple[str, ...]:
    with rb.session(task="Fix it.") as session:
        return session.begin_step(StepInput()).injections[0].pattern_ids


def test_what_a_user_added_is_said_beside_the_starter_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path))
    rule = Pattern(id="mine", tier="e3", fields={"instruction": "Ask before you delete something."})
    LocalStore(tmp_path / "patterns.db", patterns=[rule, Pattern(id="rb-error-first", tier="e3", off=True)]).close()
    with ReasonBlocks() as rb:
        told = rules_told(rb)
    assert ("mine" in told, "rb-error-first" in told, "rb-no-same-call" in told) == (True, False, True)


def test_a_rule_that_is_off_by_default_is_told_once_it_is_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path))
    (rule,) = [pattern for pattern in starter_patterns() if pattern.id == "rb-every-part"]
    assert rule.off
    with ReasonBlocks() as rb:
        assert rule.id not in rules_told(rb)
    LocalStore(tmp_path / "patterns.db", patterns=[replace(rule, off=False)]).close()
    with ReasonBlocks() as rb:
        assert rule.id in rules_told(rb)


def test_a_home_in_which_nothing_was_added_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_HOME", str(tmp_path / "home"))
    assert "rb-error-first" in rules_told(ReasonBlocks())
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("limit", [0, 1_001, 6.0, True, "64", None])
def test_a_transition_with_a_wrong_history_limit_is_refused(limit: Any) -> None:
    with pytest.raises(ConfigError, match=r"transition\.history_limit"):
        ReasonBlocks(transition=Greedy(limit))


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_transition_sees_as_much_history_as_it_asks_for(limit: int) -> None:
    transition = Greedy(limit)
    run(client(transition=transition, scorer=lambda step: 0.4).session(), 110)
    assert transition.longest == limit


def test_a_transition_sees_64_difficulties_where_it_does_not_ask() -> None:
    seen: list[int] = []

    def transition(state: FSMState, history: tuple[float, ...]) -> FSMState:
        seen.append(len(history))
        return FSMState.NORMAL

    run(client(transition=transition, scorer=lambda step: 0.4).session(), 80)
    assert max(seen) == 64


def test_a_machine_of_our_own_can_be_given_as_a_transition() -> None:
    rb = client(transition=DifficultyFSM(fast_window=2).transition, scorer=lambda step: 0.1)
    assert run(rb.session(), 5)[-1].fsm_state is FSMState.FAST


@pytest.mark.parametrize(("given", "seconds"), [({}, 0.8), ({"step_deadline_ms": 1_500}, 1.5)])
def test_an_adapter_reads_a_steps_deadline_in_seconds(given: dict[str, Any], seconds: float) -> None:
    assert ReasonBlocks(**given).step_deadline_seconds == seconds


# ------------------------------------------------------------ environment


@pytest.mark.parametrize(
    ("variable", "disabled"), [("1", True), ("true", True), ("On", True), ("0", False), ("", False), ("no", False)]
)
def test_disabled_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, variable: str, disabled: bool) -> None:
    monkeypatch.setenv("REASONBLOCKS_DISABLED", variable)
    assert ReasonBlocks().disabled is disabled


@pytest.mark.parametrize("name", ["REASONBLOCKS_DISABLED", "REASONBLOCKS_STRICT"])
def test_a_switch_that_is_neither_1_nor_0_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "maybe")
    with pytest.raises(ConfigError, match=f"{name}='maybe'"):
        ReasonBlocks()


@pytest.mark.parametrize(
    ("variable", "argument", "raises"), [("1", None, True), ("0", None, False), ("1", False, False)]
)
def test_strict_is_read_from_the_environment_when_the_argument_is_absent(
    monkeypatch: pytest.MonkeyPatch, variable: str, argument: bool | None, raises: bool
) -> None:
    monkeypatch.setenv("REASONBLOCKS_STRICT", variable)
    session = client(scorer=lambda step: 7.0, strict=argument).session()
    try:
        run(session, 2)
    except BadAnswer:
        raised = True
    else:
        raised = False
    assert raised is raises


# ------------------------------------------------------------ adapters


@pytest.mark.parametrize(("name", "near"), [("sesion", "session"), ("openai_run_stream", "openai_run_streamed")])
def test_an_unknown_method_comes_with_the_nearest_one_adapters_included(name: str, near: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean '{near}'"):
        getattr(ReasonBlocks(), name)


def test_an_unknown_method_that_is_near_nothing_comes_without_a_guess() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'xyzzy', nor has any adapter \(.*\bmiddleware\b.*\)$"):
        _ = ReasonBlocks().xyzzy


def test_the_methods_of_an_installed_adapter_are_listed_with_the_clients_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "reasonblocks_langchain-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: reasonblocks-langchain\nVersion: 0.1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert {"session", "middleware"} <= set(dir(ReasonBlocks()))


LISTED = """
from reasonblocks import ReasonBlocks
from reasonblocks.adapters import ADAPTERS
print([name for name in ADAPTERS if name in dir(ReasonBlocks(e_traces_enabled=False))])
"""


def test_the_methods_of_adapters_that_are_not_installed_are_not_listed() -> None:
    assert without_adapters(LISTED) == "[]\n"


BARE = """
import sys
from reasonblocks import ReasonBlocks
from reasonblocks.exceptions import AdapterMissing
try:
    getattr(ReasonBlocks(e_traces_enabled=False), sys.argv[1])
except AdapterMissing as missing:
    print(missing)
"""


@pytest.mark.parametrize(
    ("method", "distribution"),
    [("middleware", "reasonblocks-langchain"), ("openai_run_sync", "reasonblocks-openai-agents")],
)
def test_an_adapter_that_is_not_installed_says_what_to_install(method: str, distribution: str) -> None:
    said = without_adapters(BARE, method)
    assert said.startswith(f"rb.{method}() needs {distribution}, which is on no package index yet")
    folder = distribution.removeprefix("reasonblocks-")
    assert said.endswith(f"in a clone of ReasonBlocks: pip install ./packages/core ./packages/{folder}\n")


def without_adapters(code: str, *arguments: str) -> str:
    """What it prints where nothing is installed: without site-packages no adapter is, nor what searching needs.

    On Python 3.10 what reads TOML is a package, too.
    """
    command = [sys.executable, "-S", "-c", code, *arguments]
    with tempfile.TemporaryDirectory() as backport:
        if (found := find_spec("tomli")) is not None and found.origin is not None:
            shutil.copytree(Path(found.origin).parent, Path(backport, "tomli"))
        environ = {"PYTHONPATH": os.pathsep.join((str(Path(reasonblocks.__file__).parents[1]), backport))}
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environ).stdout


# ------------------------------------------------------------ weights, calibration, monitors


def weights_asked(**options: Any) -> dict[str, float]:
    rb = client(**options)
    session = rb.session()
    run(session, 2)
    weights: dict[str, float] = rb._evaluator.asked[-1].weights  # type: ignore[attr-defined]  # the scripted one
    return weights


def test_given_weights_go_over_those_of_the_profile() -> None:
    assert weights_asked(task_profile="qa")["claim_contradiction"] == 0.40
    given = weights_asked(weights={"semantic_loop": 0.5})
    assert (given["semantic_loop"], given["claim_contradiction"]) == (0.5, 0.30)


@pytest.mark.parametrize(("weight", "used"), [(-1.0, 0.0), (7, 1.0)])
def test_a_weight_is_capped(weight: float, used: float) -> None:
    assert weights_asked(weights={"semantic_loop": weight})["semantic_loop"] == used


def test_a_monitor_of_the_callers_can_have_a_weight() -> None:
    assert weights_asked(monitors=[Mine("mine")], weights={"mine": 0.4})["mine"] == 0.4


@pytest.mark.parametrize("profile", ["coding", "pr_review", "qa"])
def test_a_run_may_have_a_profile_of_its_own(profile: str) -> None:
    rb = client()
    session = rb.session(task_profile=profile)
    run(session, 2)
    assert rb._evaluator.asked[-1].profile == profile  # type: ignore[attr-defined]  # the scripted one


def test_four_monitors_are_allowed() -> None:
    ReasonBlocks(monitors=[Mine(f"m{at}") for at in range(4)])


def test_monitors_may_come_from_a_generator() -> None:
    rb = client(monitors=(Mine(f"m{at}") for at in range(2)))
    session = rb.session()
    run(session, 2)
    assert [one[0] for one in rb._evaluator.asked[-1].observed] == ["m0", "m1"]  # type: ignore[attr-defined]  # scripted


def test_a_calibration_may_be_a_toml_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text("difficulty_mean = 0.5\ndifficulty_spread = 0.2\n")
    rb, same = (
        ReasonBlocks(calibration=path),
        ReasonBlocks(calibration={"difficulty_mean": 0.5, "difficulty_spread": 0.2}),
    )
    assert rb.score_step("maybe an error") == same.score_step("maybe an error")


def test_a_calibration_that_is_no_toml_is_refused_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text("difficulty_mean = = 0.5")
    with pytest.raises(ConfigError, match=r"calibration=.*agent\.toml.*TOML"):
        ReasonBlocks(calibration=path)


def test_what_the_caller_changes_afterwards_changes_nothing() -> None:
    routing: dict[str, object] = {"SLOW": "small"}
    rb = ReasonBlocks(model_routing=routing)
    routing["FAST"] = "tiny"
    assert dict(rb.model_routing) == {"SLOW": "small"}


# ------------------------------------------------------------ the pattern store


def store_with(environ: dict[str, str], **given: Any) -> object:
    return configure(Options(**given), environ).backends.store


def test_a_qdrant_server_that_is_named_has_the_patterns() -> None:
    store = store_with({"QDRANT_URL": "https://127.0.0.1:9", "QDRANT_API_KEY": "key"})
    assert isinstance(store, QdrantStore)


def test_a_store_that_is_given_goes_before_a_server_that_is_named() -> None:
    own = LocalStore()
    assert store_with({"QDRANT_URL": "http://127.0.0.1:9"}, pattern_store=own) is own


def test_without_a_server_the_patterns_are_in_the_home_that_is_named(tmp_path: Path) -> None:
    store = store_with({"REASONBLOCKS_HOME": str(tmp_path)})
    assert isinstance(store, LocalStore)
    assert store.path == str(tmp_path / "patterns.db")
