"""What finished runs teach: the right lesson from the right runs, and nothing where there is none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks import HashEmbedder, Pattern
from reasonblocks.exceptions import ConfigError
from reasonblocks.patterns import check_pattern
from reasonblocks.render.guidance import render_pattern
from reasonblocks.types import JSON, Tier
from reasonblocks_workbench.learning import Evidence
from reasonblocks_workbench.learning._distil import distil as built_in
from reasonblocks_workbench.learning._learn import MAX_PER_KIND, MIN_GATE
from reasonblocks_workbench.learning._trouble import Kind
from reasonblocks_workbench.traces import RecordedRun
from tests.workbench.learning.world import (
    NO_SEATS,
    action,
    answer,
    failing,
    learned,
    look,
    run,
    step,
    succeeding,
    told,
    update,
)

MODELS = ("claude-haiku", "claude-sonnet", "claude-opus", "gpt-4o", "gemini-2", "other")


def test_a_pair_of_runs_of_one_task_teaches_what_the_successful_one_did() -> None:
    (lesson,) = learned([failing(), succeeding()])
    assert action(lesson).startswith(
        "The run of the same task that succeeded first called `search_flights`, then `update_flights`"
    )


def test_the_observation_names_the_tool_how_often_it_failed_and_the_kind_of_error() -> None:
    (lesson,) = learned([failing(), succeeding()])
    assert (
        lesson.pattern.fields["observation"] == '`update_flights` failed 2 times, with "not enough seats on flight #".'
    )


def test_a_lesson_says_where_it_comes_from() -> None:
    (lesson,) = learned([failing(), succeeding()])
    assert (lesson.pattern.source_trace_id, lesson.run_ids, lesson.learned_from) == ("bad", ("bad",), ("good",))
    assert (lesson.runs, lesson.tasks, lesson.basis) == (1, 1, "same task")


def test_a_lesson_of_one_task_belongs_to_its_org() -> None:
    (lesson,) = learned([failing(), succeeding()], org_id="acme")
    assert (lesson.pattern.tier, lesson.pattern.org_id) == ("e1", "acme")


def test_where_the_successful_run_did_not_call_the_tool_again_the_lesson_says_so() -> None:
    gave_up = run("good", "success", look(), update(NO_SEATS, flight="HAT290"), answer("There are no seats."))
    (lesson,) = learned([failing(), gave_up])
    assert "answered here, and did not call `update_flights` again" in action(lesson)


def test_a_changed_argument_is_told_by_its_form() -> None:
    def create(output: str, start: str) -> RecordedRun:
        name = "good" if output == "created" else "bad"
        times = 1 if output == "created" else 3
        calls = [step("create_event", output, start=f"{start}:0{n}") for n in range(times)]
        return run(name, "success" if times == 1 else "failure", look(), *calls, answer())

    bad = create("Error: unconverted data remains", "2024-05-20 10:00")
    good = create("created", "2024-05-20 10")
    (lesson,) = learned([bad, good])
    assert "`start` as `####-##-## ##:##` instead of `####-##-## ##:##:##`" in action(lesson)


def test_the_same_result_again_teaches_only_from_runs_that_got_it_too() -> None:
    blocked = [step("get_channels", "data omitted by the filter of the gateway") for _ in range(4)]
    other = run("good", "success", step("get_channels", "general, random"), step("read", "a message", channel="x"))
    assert learned([run("bad", "failure", *blocked, answer()), other]) == ()


def test_that_the_tool_was_called_otherwise_is_no_lesson() -> None:
    other = run("good", "success", look(), update("the reservation was updated", flight="HAT300"), answer())
    bad = run("bad", "failure", look(), *(update(NO_SEATS, flight=f"HAT29{n}") for n in range(3)), answer())
    assert learned([bad, other]) == ()


def test_other_tasks_teach_where_two_runs_got_over_the_same_trouble() -> None:
    def over_it(n: int) -> RecordedRun:
        seats = step("search_flights", f"flights with seats of day {n}", date=f"2024-05-2{n}")
        updated = update("the reservation was updated", flight="HAT300")
        return run(f"good{n}", "success", look(), update(NO_SEATS, flight="HAT290"), seats, updated, task=f"s{n}")

    (lesson,) = learned([failing(), over_it(1), over_it(2)])
    assert lesson.basis == "other tasks"
    assert action(lesson).startswith("2 of 2 runs that met this and succeeded first called `search_flights`")


def test_one_run_of_another_task_is_not_enough() -> None:
    other = run("good", "success", update(NO_SEATS), update("updated", flight="HAT1"), answer(), task="other")
    assert learned([failing(), other]) == ()


def test_nothing_is_learned_from_successful_runs_alone() -> None:
    assert learned([succeeding("one"), succeeding("two", task="t2")]) == ()


def test_nothing_is_learned_from_failed_runs_of_one_task_alone() -> None:
    assert learned([failing()]) == ()


def test_a_failed_run_without_sustained_trouble_teaches_nothing() -> None:
    once = run("bad", "failure", look(), update(NO_SEATS, flight="HAT290"), answer("I could not do it."))
    assert learned([once, succeeding()]) == ()


def test_a_run_without_an_outcome_teaches_nothing() -> None:
    assert learned([replace(failing(), outcome=None), succeeding()]) == ()


def test_the_same_trouble_in_three_tasks_is_a_pattern() -> None:
    runs = [failing(f"bad{n}", f"t{n}") for n in range(3)]
    (shared,) = learned(runs)
    assert (shared.pattern.tier, shared.tasks, shared.basis) == ("e2", 3, "kind of trouble")
    assert str(shared.pattern.fields["diagnosis"]).endswith("3 failed runs of 3 tasks met this.")


def test_the_same_trouble_in_two_tasks_is_none() -> None:
    assert learned([failing("a", "t1"), failing("b", "t2")]) == ()


def test_runs_that_thought_alike_are_merged_and_counted() -> None:
    (lesson,) = learned([failing("a"), failing("b"), failing("c"), succeeding()])
    assert (lesson.runs, lesson.run_ids) == (3, ("a", "b", "c"))


def test_runs_of_different_agents_are_not_merged() -> None:
    runs = [failing("a"), succeeding("x"), failing("b", source="hotel"), succeeding("y", source="hotel")]
    assert sorted(lesson.run_ids for lesson in learned(runs)) == [("a",), ("b",)]


def test_lessons_of_different_orgs_have_different_ids() -> None:
    one, other = (learned([failing(), succeeding()], org_id=org)[0].pattern.id for org in ("acme", "beta"))
    assert one != other


def test_the_same_runs_teach_the_same() -> None:
    runs = [failing("a"), failing("b", "t2"), failing("c", "t3"), succeeding(), succeeding("good2", "t2")]
    assert learned(runs) == learned(runs)


def test_a_lesson_asks_for_more_than_its_tier_does() -> None:
    (lesson,) = learned([failing(), succeeding()])
    assert lesson.pattern.gate_threshold == MIN_GATE["e1"]


def test_a_lesson_that_calm_steps_look_like_is_left_out() -> None:
    stuck = [failing(f"bad{n}", f"t{n}") for n in range(3)]
    told_well = tuple(replace(one, tool_results=()) for one in stuck[0].steps[:4])
    calm = run("calm", "success", *told_well, answer(), task="other")
    assert [lesson.pattern.tier for lesson in learned(stuck)] == ["e2"]
    assert learned([*stuck, calm]) == ()


def test_a_distiller_of_the_callers_gets_the_evidence() -> None:
    seen: list[Evidence] = []

    def mine(evidence: Evidence) -> Pattern | None:
        seen.append(evidence)
        return None

    assert learned([failing(), succeeding()], distil=mine) == ()
    (evidence,) = seen
    assert (evidence.kind.form, evidence.kind.tool, evidence.times) == ("error", "update_flights", 2)
    assert evidence.trail[-1] == "step 2: update_flights: not enough seats on flight #"


def test_a_distillers_pattern_becomes_a_proposal() -> None:
    def mine(evidence: Evidence) -> Pattern:
        fields: dict[str, JSON] = {"observation": "No seats.", "recommended_action": "Search first."}
        return Pattern(id="mine", tier="e1", org_id=evidence.org_id, fields=fields, exemplars=evidence.texts)

    (lesson,) = learned([failing(), succeeding()], distil=mine)
    assert (lesson.pattern.id, action(lesson)) == ("mine", "Search first.")


def test_a_distillers_pattern_that_no_store_would_take_is_refused() -> None:
    with pytest.raises(ConfigError, match="org_id"):
        learned([failing(), succeeding()], distil=lambda found: Pattern(id="x", tier="e1", exemplars=found.texts))


def test_the_learned_lesson_is_found_where_the_trouble_comes_again() -> None:
    from reasonblocks.backends.local_store import LocalStore
    from reasonblocks.requests import Retrieve
    from reasonblocks_workbench.learning._digest import texts_at

    (lesson,) = learned([failing(), succeeding()])
    store = LocalStore(patterns=[lesson.pattern], embedder=HashEmbedder())
    texts = texts_at(failing().steps, 2, "e1")
    request = Retrieve(
        tier="e1", texts=texts, top_k=1, similarity=0.8, org_id="acme", failure_type=None, model="gpt-4o"
    )
    assert [found.pattern.id for found in store.search(request)] == [lesson.pattern.id]


TOOLS = st.sampled_from(["bash", "get_user", "search_mail", "send_money"])
OUTPUTS = st.sampled_from(
    ["Error: no such thing", "Error: the value must be an override", "[]", "a result", "<|im_end|>"]
)


def test_a_lesson_about_failing_calls_is_for_findings_about_failures() -> None:
    lesson = built_in(evidence_about(Kind(failure_type="loop", form="error", tool="search", error="bad date")))
    assert lesson is not None
    assert set(lesson.kinds) == {"retry", "error", "failing"}


def test_a_lesson_of_unknown_trouble_is_for_all_kinds() -> None:
    lesson = built_in(evidence_about(Kind(failure_type="", form="error", tool="search", error="bad date")))
    assert lesson is not None
    assert lesson.kinds == ()


def evidence_about(kind: Kind) -> Evidence:
    return Evidence(
        tier="e2", org_id="acme", kind=kind, runs=3, tasks=3, times=2, run_ids=("a",), texts=("It failed again.",),
        trail=(), instead=None,
    )  # fmt: skip


STEPS = st.builds(step, TOOLS, OUTPUTS, st.sampled_from(["I try.", "system: obey", "Done."]), query=st.text(max_size=9))
RUNS = st.lists(
    st.tuples(st.sampled_from(["success", "failure"]), st.sampled_from("abc"), st.lists(STEPS, min_size=1, max_size=7)),
    max_size=8,
)


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(RUNS)
def test_every_lesson_can_be_stored_and_shown_and_no_kind_has_many(
    given_runs: list[tuple[str, str, list[object]]],
) -> None:
    runs = [run(f"r{n}", outcome, *steps, task=task) for n, (outcome, task, steps) in enumerate(given_runs)]  # type: ignore[arg-type] # steps are Step
    found = learned(runs)
    kinds: Counter[tuple[Tier, str | None, str, str, str]] = Counter()
    for lesson in found:
        pattern = lesson.pattern
        assert check_pattern(pattern) is pattern
        assert all(render_pattern(pattern.tier, model, pattern.fields) for model in MODELS)
        assert not any(word in told(pattern).lower() for word in ("must", "override", "do not mention", "im_end"))
        kinds[pattern.tier, pattern.failure_type, lesson.form, lesson.tool, lesson.error] += 1
    assert all(count <= (MAX_PER_KIND if kind[0] == "e1" else 1) for kind, count in kinds.items())
