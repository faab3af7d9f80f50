"""The table of the package is the statement's, cell by cell, and has the properties that make threads end."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks_threads import Phase, Policy, Proposal, Stage, Trigger, table
from reasonblocks_threads.cards import answers_of
from reasonblocks_threads.phases import CATEGORIES, HUMAN, Addition
from reasonblocks_threads.policy import judge, strictest
from tests.threads import statement
from tests.threads.driver import ACTIONS, Clock, Hands, plain_policy
from tests.threads.statement import CARDS, CELLS, PHASES, STAGES, TERMINAL

Node = tuple[str, str]
BACKWARD = {"redirected", "provided", "edited", "retry_cleanup"}
"""The triggers by which a person goes back, or asks again."""


def moved(stage: str, trigger: str, phase: str, after: str) -> str:
    """Return the stage after a move that goes forward."""
    passed = trigger == "inference_done" and after == "awaiting_inference"
    return statement.next_stage(stage) if trigger == "confirmed" or passed else stage


def edges(triggers: set[str]) -> dict[Node, set[Node]]:
    """Return the graph of (phase, stage) by these triggers, as far as it can be reached from proposed."""
    found: dict[Node, set[Node]] = {}
    todo: list[Node] = [("proposed", "intent")]
    while todo:
        node = todo.pop()
        if node in found:
            continue
        found[node] = set()
        for (phase, trigger), targets in CELLS.items():
            if phase == node[0]:
                nexts = {(to, moved(node[1], trigger, phase, to)) for to in targets if fits(to, node[1])}
                todo += nexts
                if trigger in triggers:
                    found[node] |= nexts
    return found


def fits(phase: str, stage: str) -> bool:
    """Return False for the phases of another stage."""
    return not any(f"_{other}" in phase for other in STAGES if other != stage and not phase.endswith("inference"))


def test_the_table_of_the_package_has_the_120_cells_of_the_statement() -> None:
    found = {
        (phase.value, trigger.value): {to.value for to in targets} for (phase, trigger), targets in table.CELLS.items()
    }
    assert len(found) == 120
    assert found == {cell: {*targets} for cell, targets in CELLS.items()}


def test_phases_triggers_and_cards_are_those_of_the_statement() -> None:
    assert {phase.value for phase in Phase} == {*PHASES}
    assert len(PHASES) == 21
    assert {trigger.value for trigger in HUMAN} == {*statement.HUMAN}
    assert {trigger.value for trigger in Trigger} - {*statement.HUMAN} == {*statement.SYSTEM}
    assert (len(statement.HUMAN), len(statement.SYSTEM)) == (12, 13)
    assert {phase.value: kind for phase, kind in table.CARD_KINDS.items()} == CARDS
    assert {phase.value for phase in Phase if phase.waits} == {*CARDS}
    assert {phase.value for phase in Phase if phase.is_terminal} == {*TERMINAL}
    assert {*CATEGORIES} == {*Phase}
    assert len(set(CATEGORIES.values())) == 7


def test_possible_lists_the_triggers_of_each_phase() -> None:
    for phase in Phase:
        assert {trigger.value for trigger in table.possible(phase)} == {t for p, t in CELLS if p == phase.value}


def test_times_are_those_of_the_statement() -> None:
    hour = 3600
    assert (7 * 24 * hour, 72 * hour, 24 * hour) == (table.WAIT_S, table.REVIEW_S, table.PROPOSED_S)
    assert (table.QUEUED_LIVE_S, table.QUEUED_S, table.INFERRING_S) == (120, 900, 180)
    assert table.CLEANUP_S > 2 * 60, "both attempts of a clean-up fit"


def test_every_phase_is_reached_from_proposed() -> None:
    assert {phase for phase, _ in edges({trigger for _, trigger in CELLS})} == {*PHASES}


def test_terminals_have_no_cell_and_every_other_phase_has_an_exit() -> None:
    assert not [cell for cell in CELLS if cell[0] in TERMINAL]
    for phase in {*PHASES} - {*TERMINAL}:
        assert any(targets - {phase} for (start, _), targets in CELLS.items() if start == phase), phase


def test_without_a_persons_steps_back_nothing_goes_round() -> None:
    graph = edges({trigger for _, trigger in CELLS} - BACKWARD)
    done: set[Node] = set()
    while rest := [node for node, nexts in graph.items() if node not in done and nexts <= done]:
        done |= {*rest}
    assert done == {*graph}, f"a cycle among {[*graph.keys() - done]}"
    assert {*statement.HUMAN} >= BACKWARD


def test_the_system_alone_ends_every_thread() -> None:
    graph = edges({*statement.SYSTEM})
    ends = {node for node in graph if node[0] in TERMINAL}
    while more := {node for node, nexts in graph.items() if node not in ends and nexts & ends}:
        ends |= more
    assert ends == {*graph}


@pytest.mark.parametrize("phase", CARDS)
def test_every_wait_can_be_dismissed_times_out_and_is_closed_by_its_parent(phase: str) -> None:
    possible = {trigger for start, trigger in CELLS if start == phase}
    assert possible >= {"dismissed_by_user", "timeout", "parent_force_close"}
    assert ("redirected" in possible) == (CARDS[phase] != "cleanup_failure")


@pytest.mark.parametrize("phase", CARDS)
def test_answers_and_human_cells_cover_each_other(phase: str) -> None:
    offered = statement.answers(phase, cleaner=True)
    cells = {trigger for start, trigger in CELLS if start == phase and trigger in statement.HUMAN}
    assert {*offered.values()} == cells
    ours = {name: one.value for name, one in answers_of(Phase(phase)).items()}
    assert ours.pop("later") == Addition.DEFER.value
    assert ours == offered


def test_without_a_card_a_person_only_dismisses_or_takes_over() -> None:
    rest = {trigger for phase, trigger in CELLS if phase not in CARDS and trigger in statement.HUMAN}
    assert rest == {"dismissed_by_user", "handed_off_by_user"}


# --- when nobody is asked

GRADE = st.sampled_from(statement.GRADES)
NAMES = st.sampled_from([*ACTIONS, "rm_rf"])
CONFIDENCES = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, 0.59, 0.6, 0.61, 1.0]))


def names(of: st.SearchStrategy[str]) -> st.SearchStrategy[frozenset[str] | None]:
    return st.one_of(st.none(), st.frozensets(of))


POLICIES = st.builds(
    Policy,
    auto_advance=st.frozensets(st.sampled_from(list(Stage))),
    floor=st.sampled_from([0.0, 0.3, 0.6, 0.9, 1.0]),
    consent_for=st.frozensets(NAMES),
    kinds=names(st.sampled_from(["call", "other"])),
    actions=names(NAMES),
    irreversibility=GRADE,
    regret=GRADE,
    amplifiers=st.frozensets(st.sampled_from(["external_effect", "data_loss"])),
    review_above=GRADE,
)
SPECS = {action.name: action.spec for action in Hands(Clock()).catalogue()}


def passed(stage: Stage, proposal: Proposal, policy: Policy) -> bool:
    name = proposal.body.get("action")
    spec = SPECS.get(str(name))
    parameters: dict[str, Any] = proposal.body.get("parameters", {})  # type: ignore[assignment]
    ready = str(name) not in ACTIONS or ACTIONS[str(name)].ready(parameters)
    found = ({"name": "ready", "ok": ready, "detail": ""},)
    return all(one.passed for one in judge(stage, proposal, policy, spec=spec, preconditions=found))


def proposal_of(stage: Stage, name: str, n: int, confidence: float) -> Proposal:
    if stage is Stage.ACTION:
        return Proposal.of_action(name, {"n": n}, confidence=confidence)
    return Proposal(stage=stage, body={"text": "it"}, confidence=confidence)


@given(st.sampled_from(list(Stage)), NAMES, st.integers(0, 3), CONFIDENCES, POLICIES, POLICIES, POLICIES)
def test_gates_pass_as_the_statement_passes(
    stage: Stage, name: str, n: int, confidence: float, installation: Policy, above: Policy, own: Policy
) -> None:
    proposal = proposal_of(stage, name, n, confidence)
    policies = [plain_policy(policy) for policy in (installation, above, own)]
    told = {"body": proposal.body, "confidence": confidence}
    expected = statement.passes(stage.value, told, statement.strictest(policies), ACTIONS)
    assert passed(stage, proposal, strictest(installation, above, own)) == expected


@pytest.mark.parametrize("name", [*ACTIONS, "rm_rf"])
def test_under_the_loosest_policy_only_an_action_that_says_auto_passes(name: str) -> None:
    everything: Any = frozenset({"external_effect", "data_loss", "cost", "fleet_wide"})
    loosest = Policy(
        auto_advance=frozenset(Stage), floor=0.0, irreversibility="high", regret="high", amplifiers=everything
    )
    assert passed(Stage.ACTION, proposal_of(Stage.ACTION, name, 0, 1.0), loosest) == (
        name in ACTIONS and ACTIONS[name].auto
    )


@pytest.mark.parametrize("confidence", [math.nan, math.inf, -math.inf])
def test_a_confidence_that_is_no_number_never_passes(confidence: float) -> None:
    open_to_all = Policy(auto_advance=frozenset(Stage), floor=0.0)
    assert not passed(Stage.INTENT, proposal_of(Stage.INTENT, "", 0, confidence), open_to_all)
