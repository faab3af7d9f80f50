"""The task families: what the agent is shown is enough to win, chance is not, and a refusal says what is valid.

An edit of `pasted` alone is refused as editors do it, without a word on why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from _outcome.backend import Backend, Query
from _outcome.environment import Call, Environment, Limited, Reopening, Solvable, ToolError, names
from _outcome.policies import RandomBackend, ReferenceBackend, calls_in, close, outcome, play, reference_wins
from _outcome.tasks import FAMILIES
from _outcome.tasks._programs import PROGRAMS, Program
from _outcome.tasks._repository import MODULES, Function, variants
from _outcome.tasks._sandbox import failures, failures_apart, refused
from _outcome.tasks.orders import Orders
from _outcome.tasks.project import Project
from _outcome.tasks.repair import Repair

OWN = ("house", "hunt", "orders", "repair", "claim", "reword", "project", "pasted", "pages", "roots")
"""The families that need nothing but Python."""
FUNCTIONS = [function for functions in MODULES.values() for function in functions.values()]
SEEDS = 30
LONGEST_RESULT = 400
"""Characters that a small model reads in a few seconds without an accelerator."""
LONGEST_FILE = 1_200
"""Characters of the files of the family `project`, which is not for small models."""
REOPENING = {"claim", "pasted", "pages", "roots"}
PROCESSES = {"project"}
"""Families that start a process for each test run: few seeds of them are played."""


def seeds(family: str) -> range:
    return range(3 if family in PROCESSES else SEEDS)


@pytest.fixture(params=OWN)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def fresh(family: str) -> Iterator[Callable[[int], tuple[Environment, str]]]:
    """A maker of environments that are closed after the test, with the user's message."""
    made: list[Environment] = []

    def start(seed: int) -> tuple[Environment, str]:
        made.append(FAMILIES[family]())
        return made[-1], made[-1].reset(seed)

    yield start
    for environment in made:
        close(environment)


Fresh = Callable[[int], tuple[Environment, str]]


def test_the_reference_policy_wins_from_the_start(family: str, fresh: Fresh) -> None:
    started = [fresh(seed)[0] for seed in seeds(family)]
    won = [reference_wins(environment, environment.max_steps) for environment in started]
    assert sum(won) >= 0.9 * len(won)


def test_random_calls_seldom_win(family: str, fresh: Fresh) -> None:
    won = []
    for seed in seeds(family):
        environment, task = fresh(seed)
        play(environment, task, RandomBackend(1), seed, environment.max_steps)
        won.append(environment.success())
    assert sum(won) < 0.4 * len(won)


def test_nothing_is_solved_at_the_start(family: str, fresh: Fresh) -> None:
    for seed in seeds(family):
        environment, _ = fresh(seed)
        assert not environment.success()
        assert not environment.done


def test_the_same_calls_give_the_same_results_and_states(family: str, fresh: Fresh) -> None:
    for seed in seeds(family)[:5]:
        environment, task = fresh(seed)
        made = play(environment, task, RandomBackend(2, repeats=0.4), seed, 12)
        again, same = fresh(seed)
        assert same == task
        assert [outcome(again, call) for call, _ in made] == [text for _, text in made]
        assert (again.done, again.success()) == (environment.done, environment.success())
        if isinstance(environment, Solvable) and isinstance(again, Solvable):
            assert again.reference() == environment.reference()


def test_a_reset_forgets_the_run_before(family: str, fresh: Fresh) -> None:
    used, _ = fresh(3)
    reference_wins(used, 5)
    task = used.reset(4)
    new, same = fresh(4)
    assert task == same
    policy = RandomBackend(3)
    assert play(used, task, policy, 4, 6) == play(new, task, policy, 4, 6)


def test_a_random_policy_is_a_backend_that_answers_alike() -> None:
    backend: Backend = RandomBackend(4)
    hunt = FAMILIES["hunt"]()
    query = Query(messages=[{"role": "user", "content": hunt.reset(0)}], tools=hunt.tools, lane=0, seed=1)
    first, again, other = backend.complete([query, query, replace(query, seed=2)])
    assert first == again
    assert first != other
    backend.close()


def test_an_unknown_tool_is_refused_with_the_names_of_the_tools(family: str, fresh: Fresh) -> None:
    environment, _ = fresh(0)
    with pytest.raises(ToolError) as refusal:
        environment.call("teleport", {})
    assert all(name in str(refusal.value) for name in names(environment.tools))


def test_missing_arguments_are_refused_with_their_names(family: str, fresh: Fresh) -> None:
    environment, _ = fresh(0)
    for tool in environment.tools:
        wanted = tool["function"]["parameters"]["required"]
        if not wanted:
            continue
        with pytest.raises(ToolError) as refusal:
            environment.call(tool["function"]["name"], {"nonsense": "x"})
        assert all(key in str(refusal.value) for key in wanted)
    assert not environment.done


@pytest.mark.parametrize(
    ("family", "call", "valid"),
    [
        ("house", Call("go", {"door": "roof"}), "Doors: "),
        ("hunt", Call("list_dir", {"path": "roof"}), "Folders: "),
        ("hunt", Call("read_file", {"path": "roof"}), "Folders: "),
        ("orders", Call("find_orders", {"customer": "roof", "date": "roof"}), "C-"),
        ("orders", Call("help", {"tool": "roof"}), "find_orders, refund, done"),
        ("repair", Call("apply_patch", {"name": "roof"}), "list_patches"),
        ("repair", Call("edit_line", {"line": "0", "text": "x"}), "Lines: 1 to "),
        ("claim", Call("set", {"name": "roof", "value": "x"}), "Settings: "),
        ("project", Call("read_file", {"path": "roof"}), "Files: shop/"),
        ("pasted", Call("edit", {"old": "a\nb", "new": "c"}), "one line each"),
        ("pages", Call("open", {"id": "roof"}), "results of search"),
        ("pages", Call("answer", {"id": "roof"}), "results of search"),
        ("pages", Call("search", {"query": "lamp", "page": "0"}), "a number from 1"),
        ("roots", Call("ls", {"path": "roof"}), "the folder ."),
        ("roots", Call("read", {"path": "roof"}), "with ls"),
        ("roots", Call("set", {"path": "roof", "key": "port", "value": "1"}), "with ls"),
        ("project", Call("replace_text", {"path": "shop/parse.py", "old": "roof", "new": "x"}), "occurs 0 times"),
    ],
)
def test_a_value_that_does_not_exist_is_refused_with_what_is_valid(family: str, call: Call, valid: str) -> None:
    environment = FAMILIES[family]()
    environment.reset(0)
    with pytest.raises(ToolError) as refusal:
        environment.call(*call)
    assert valid in str(refusal.value)


def test_a_date_that_cannot_be_read_is_refused_with_forms_of_which_one_is_read() -> None:
    orders = Orders()
    for seed in range(SEEDS):
        orders.reset(seed)
        dates = orders.choices()["find_orders.date"]
        customer = orders.choices()["find_orders.customer"][0]
        with pytest.raises(ToolError) as refusal:
            orders.call("find_orders", {"customer": customer, "date": dates[0]})
        forms = orders.choices()["find_orders.date"][1:]
        assert all(form in str(refusal.value) for form in forms)
        read = [form for form in forms if "total" in _found(orders, customer, form)]
        assert len(read) == 1


def _found(orders: Orders, customer: str, date: str) -> str:
    return outcome(orders, Call("find_orders", {"customer": customer, "date": date}))


def test_a_refund_of_another_order_or_amount_is_refused() -> None:
    orders = Orders()
    orders.reset(1)
    while (call := orders.reference()) and call.name != "refund":
        outcome(orders, call)
    assert call is not None
    totals = dict(zip(orders.choices()["refund.order"], orders.choices()["refund.amount"]))
    order, reason = call.arguments["order"], call.arguments["reason"]
    other = next(name for name in totals if name != order)
    for wrong in ((other, totals[other]), (order, totals[other])):
        with pytest.raises(ToolError, match=r"another item|has to be the total"):
            orders.call("refund", {"order": wrong[0], "amount": wrong[1], "reason": reason})
    assert not orders.success()


@pytest.mark.parametrize("family", ["hunt", "reword"])
def test_an_answer_that_no_result_has_is_refused(family: str) -> None:
    environment = FAMILIES[family]()
    environment.reset(0)
    for _ in range(5):
        with pytest.raises(ToolError, match="Look it up before you answer"):
            environment.call("answer", {"value": "1"})
    assert not environment.done


def followed(environment: Environment, until: str) -> str:
    """Follow the reference policy until a result has this text, and return that result."""
    shown = ""
    while until not in shown:
        assert isinstance(environment, Solvable)
        call = environment.reference()
        assert call is not None
        shown = outcome(environment, call)
    return shown


def test_three_wrong_answers_from_files_end_a_hunt() -> None:
    hunt = FAMILIES["hunt"]()
    hunt.reset(0)
    wrong = followed(hunt, " = ").split(" ")[0].partition(".")[2]
    for count in range(3):
        assert not hunt.done, count
        outcome(hunt, Call("answer", {"value": wrong}))
    assert (hunt.done, hunt.success()) == (True, False)


def test_a_wrong_answer_from_a_result_ends_a_search() -> None:
    reword = FAMILIES["reword"]()
    reword.reset(0)
    grams = followed(reword, " weighs ").partition(" weighs ")[2].split(" ")[0]
    reword.call("answer", {"value": grams})
    assert (reword.done, reword.success()) == (True, False)


def test_an_early_report_ends_the_task_unsolved() -> None:
    claim = FAMILIES["claim"]()
    claim.reset(0)
    claim.call("finish", {"report": "All checks pass."})
    assert claim.done
    assert not claim.success()


def test_every_second_empty_search_names_terms() -> None:
    reword = FAMILIES["reword"]()
    reword.reset(0)
    said = [reword.call("search", {"query": f"roof {count}"}) for count in range(4)]
    assert ["terms of the index" in text for text in said] == [True, False, True, False]
    assert said[0].partition("index: ")[2] != said[2].partition("index: ")[2]


def test_choices_have_only_values_that_the_agent_was_shown(family: str, fresh: Fresh) -> None:
    for seed in seeds(family)[:10]:
        environment, task = fresh(seed)
        assert isinstance(environment, Limited)
        shown = " ".join([task, str(environment.tools)])
        for step in range(12):
            choices = environment.choices()
            assert all(values and len(set(values)) == len(values) for values in choices.values())
            unseen = [value for values in choices.values() for value in values if value not in shown]
            assert not unseen
            if environment.done:
                break
            made = play(environment, task, RandomBackend(seed), step, 1)
            shown = f"{shown} {made[0][1]}"


def test_the_reference_policy_needs_only_what_was_shown(family: str, fresh: Fresh) -> None:
    for seed in seeds(family)[:10]:
        environment, task = fresh(seed)
        assert isinstance(environment, Solvable)
        shown = f"{task} {environment.tools}"
        while not environment.done and (call := environment.reference()):
            unseen = [value for value in call.arguments.values() if value not in shown and _is_name(value)]
            assert not unseen
            shown = f"{shown} {outcome(environment, call)}"


def _is_name(value: Any) -> bool:
    """Sentences and lines of source are the agent's own."""
    return " " not in str(value)


def test_results_are_short(family: str, fresh: Fresh) -> None:
    environment, task = fresh(1)
    made = play(environment, task, RandomBackend(5), 1, environment.max_steps)
    longest = LONGEST_FILE if family == "project" else LONGEST_RESULT
    assert max(len(text) for _, text in made) <= longest


def test_a_run_that_ended_can_be_reopened(family: str, fresh: Fresh) -> None:
    environment, _ = fresh(0)
    if not isinstance(environment, Reopening):
        assert family not in REOPENING
        return
    assert isinstance(environment, Solvable)
    assert isinstance(environment, Limited)
    first = environment.reference()
    assert first is not None
    outcome(environment, first)
    name, wanted = names(environment.tools)[-1], environment.tools[-1]["function"]["parameters"]["required"]
    environment.call(name, {key: environment.choices().get(f"{name}.{key}", ["done"])[0] for key in wanted})
    assert environment.done
    assert not environment.success()
    environment.reopen()
    assert not environment.done
    assert reference_wins(environment, environment.max_steps)


def test_the_reference_backend_plays_the_policy_of_the_querys_task(family: str, fresh: Fresh) -> None:
    environment, task = fresh(2)
    assert isinstance(environment, Solvable)
    backend: Backend = ReferenceBackend(FAMILIES[family], [1, 2, 3])
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    for _ in range(6):
        query = Query(messages=messages, tools=environment.tools, lane=0, seed=0)
        call = backend.complete([query])[0].call
        assert call == environment.reference()
        if call is None:
            break
        function = {"name": call.name, "arguments": json.dumps(call.arguments)}
        messages.append({"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": function}]})
        result = outcome(environment, call)
        messages.append({"role": "tool", "tool_call_id": "a", "content": f"{result}\n\nGuidance."})
        if environment.done:
            break
    backend.close()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.source[4:10])
def test_a_program_passes_its_tests_and_each_wrong_line_fails_one(program: Program) -> None:
    lines = program.source.split("\n")
    assert not failures(program.source, program.tests)
    for at, text in program.wrong:
        assert failures("\n".join([*lines[: at - 1], text, *lines[at:]]), program.tests), text


def test_one_patch_repairs_and_the_first_does_not() -> None:
    repair = Repair()
    for seed in range(100):
        repair.reset(seed)
        repair.call("list_patches", {})
        good = []
        for name in repair.choices()["apply_patch.name"]:
            repair.call("apply_patch", {"name": name})
            if repair.success():
                good.append(name)
        assert len(good) == 1
        assert good != ["p1"]


def test_a_free_edit_is_tested_in_a_process_of_its_own() -> None:
    source, tests = "def f():\n    return 1", (("f()", "2"), ("g()", "1"))
    assert failures_apart(source, tests) == tuple(failures(source, tests))
    assert failures_apart("f = lambda: f", (("f()", "{'b', 'a'}"),)) == (
        "f() is <function <lambda>>, expected {'b', 'a'}",
    )
    assert failures_apart("def f(:", tests)[0].startswith("lib.py does not load")


@pytest.mark.parametrize(
    "line", ["import os", "x = open('a')", "x = ().__class__", "def __f(): pass", "(1 for _ in ()).gi_frame"]
)
def test_an_edit_that_reaches_out_of_the_file_is_refused(line: str) -> None:
    assert refused(line)
    assert not refused("def f(x):\n    return len(x)")
    repair = Repair()
    repair.reset(0)
    last = len(repair.call("read_file", {}).split("\n"))
    with pytest.raises(ToolError, match="the file may not"):
        repair.call("edit_line", {"line": str(last), "text": f"    {line}"})


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.source[4:10])
def test_each_bug_of_the_repository_fails_a_case_and_one_swap_repairs_it(function: Function) -> None:
    for right, wrong in function.bugs:
        broken = function.source.replace(right, wrong, 1)
        assert failures(function.source, function.cases) == []
        assert failures(broken, function.cases)
        assert function.source in variants(broken)


def test_the_second_bug_shows_only_after_the_first_is_repaired() -> None:
    project = Project()
    for seed in seeds("project"):
        project.reset(seed)
        first = project.call("run_tests", {})
        shown = {first}
        while not project.done and (call := project.reference()):
            shown.add(outcome(project, call))
        tests = {text.split(": ")[0] for text in shown if text.startswith("FAILED")}
        assert len(tests) == 2
        assert first.startswith(min(tests))


def test_a_module_that_does_not_load_is_named_and_can_be_restored() -> None:
    project = Project()
    project.reset(0)
    project.call("list_files", {})
    project.call("read_file", {"path": "shop/parse.py"})
    project.call("replace_lines", {"path": "shop/parse.py", "first": "1", "last": "1", "text": "def amount(line:"})
    assert project.call("run_tests", {}).startswith("FAILED tests/test_parse.py: SyntaxError")
    assert reference_wins(project, project.max_steps)


@pytest.mark.parametrize(
    ("path", "text"), [("tests/test_parse.py", "import os"), ("shop/parse.py", "import os\n\ndef amount(line):")]
)
def test_an_edit_of_a_test_or_with_an_import_is_refused_and_changes_nothing(path: str, text: str) -> None:
    project = Project()
    project.reset(0)
    before = project.call("read_file", {"path": path})
    with pytest.raises(ToolError):
        project.call("replace_lines", {"path": path, "first": "1", "last": "1", "text": text})
    assert project.call("read_file", {"path": path}) == before


def test_the_random_policy_goes_back_and_forth_as_often_as_asked() -> None:
    house = FAMILIES["house"]()
    made = [call for call, _ in play(house, house.reset(0), RandomBackend(1, repeats=1.0), 0, 8)]
    assert made[2:] == made[:-2]
    assert [call.name for call in made] == ["go"] * 8


def test_calls_are_read_from_messages() -> None:
    function = {"name": "go", "arguments": '{"door": "attic"}'}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "tool_calls": [{"function": function}]},
    ]
    assert calls_in(messages) == [Call("go", {"door": "attic"})]
