"""The transition table has the properties that the engine relies on."""

from __future__ import annotations

import pytest

from reasonblocks_threads.cards import answers_of
from reasonblocks_threads.phases import (
    CATEGORIES,
    HUMAN,
    STAGES,
    Phase,
    Stage,
    Trigger,
    clarification,
    inferring,
)
from reasonblocks_threads.table import CARD_KINDS, CELLS, possible

Node = tuple[Phase, Stage]
WAITS = [phase for phase in Phase if phase.waits]
TERMINALS = [phase for phase in Phase if phase.is_terminal]
LIVE = [phase for phase in Phase if not phase.is_terminal]
BACKWARDS = {Trigger.REDIRECTED, Trigger.PROVIDED, Trigger.EDITED, Trigger.RETRY_CLEANUP}


def next_nodes(node: Node, trigger: Trigger) -> set[Node]:
    """The phases and stages to which a trigger can lead, by the rules of stages."""
    phase, stage = node
    found = set()
    for target in CELLS.get((phase, trigger), ()):
        if target in (*map(inferring, STAGES), *map(clarification, STAGES)) and stage.value not in target.value:
            continue
        advances = target is Phase.AWAITING_INFERENCE and trigger in (
            Trigger.CONFIRMED, Trigger.EDITED, Trigger.INFERENCE_DONE,
        )  # fmt: skip
        if trigger in (Trigger.REDIRECTED, Trigger.PROVIDED):
            found |= {(target, each) for each in STAGES[: STAGES.index(stage) + 1]}
        elif advances:
            found |= {(target, each) for each in STAGES[STAGES.index(stage) + 1 :][:1]}
        else:
            found.add((target, stage))
    return found


def nodes(triggers: set[Trigger]) -> set[Node]:
    """The nodes that these triggers reach from a new thread."""
    found: set[Node] = set()
    waiting = [(Phase.PROPOSED, Stage.INTENT)]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [after for trigger in triggers for after in next_nodes(node, trigger)]
    return found


def test_it_has_21_phases_and_120_cells() -> None:
    assert len(Phase) == 21
    assert len(CELLS) == 120
    assert len(HUMAN) == 12
    assert len(Trigger) == 25


def test_every_phase_is_reached_from_proposed() -> None:
    assert {phase for phase, _ in nodes(set(Trigger))} == {*Phase}


def test_terminals_have_no_cell_and_all_others_lead_elsewhere() -> None:
    assert {phase for phase in Phase if not possible(phase)} == {*TERMINALS}
    for phase in LIVE:
        assert {target for trigger in possible(phase) for target in CELLS[phase, trigger]} - {phase}


def test_every_trigger_has_a_cell_with_targets() -> None:
    assert {trigger for _, trigger in CELLS} == {*Trigger}
    assert all(CELLS.values())


def test_without_a_person_who_leads_back_no_thread_goes_in_circles() -> None:
    """Phase and stage never come twice: a topological order exists."""
    triggers = {*Trigger} - BACKWARDS
    edges = {node: {after for trigger in triggers for after in next_nodes(node, trigger)} for node in nodes({*Trigger})}
    while edges:
        ends = {node for node, after in edges.items() if not after & {*edges}}
        assert ends, f"a circle in {[*edges]}"
        edges = {node: after for node, after in edges.items() if node not in ends}
    assert BACKWARDS <= HUMAN


def test_the_system_alone_leads_from_everywhere_to_a_terminal() -> None:
    system = {*Trigger} - HUMAN
    ends = {node for node in nodes({*Trigger}) if node[0].is_terminal}
    grown = True
    while grown:
        more = {n for n in nodes({*Trigger}) if any(next_nodes(n, trigger) & ends for trigger in system)}
        grown = not more <= ends
        ends |= more
    assert ends == nodes({*Trigger})


@pytest.mark.parametrize("phase", WAITS)
def test_every_card_can_be_dismissed_times_out_and_closes_with_its_parent(phase: Phase) -> None:
    assert {Trigger.DISMISSED_BY_USER, Trigger.TIMEOUT, Trigger.PARENT_FORCE_CLOSE} <= {*possible(phase)}
    if phase is not Phase.DONE_CLEANUP_UNSUCCESSFUL:
        assert Trigger.REDIRECTED in possible(phase)


@pytest.mark.parametrize("phase", LIVE)
def test_every_phase_but_an_execution_can_be_dismissed_by_hand(phase: Phase) -> None:
    assert (Trigger.DISMISSED_BY_USER in possible(phase)) is (phase is not Phase.EXECUTING)
    assert Trigger.PARENT_FORCE_CLOSE in possible(phase)


@pytest.mark.parametrize("phase", WAITS)
def test_answers_and_human_cells_cover_each_other(phase: Phase) -> None:
    offered = {trigger for trigger in answers_of(phase).values() if isinstance(trigger, Trigger)}
    assert offered == {*possible(phase)} & HUMAN


def test_cards_open_in_the_wait_phases_only() -> None:
    assert {*CARD_KINDS} == {*WAITS}
    assert {*CATEGORIES} == {*Phase}


def test_wildcards_never_replace_a_row_of_their_own() -> None:
    """A review that nobody answers is accepted; an unanswered inference asks; every other card is dismissed."""
    timeouts = {phase: CELLS[phase, Trigger.TIMEOUT] for phase in Phase if (phase, Trigger.TIMEOUT) in CELLS}
    assert timeouts.pop(Phase.AWAITING_REVIEW) == (Phase.DONE,)
    assert timeouts.pop(Phase.EXECUTING) == (Phase.AWAITING_REDIRECT,)
    assert timeouts.pop(Phase.CLEANING_UP) == (Phase.DONE_CLEANUP_UNSUCCESSFUL,)
    assert timeouts.pop(Phase.AWAITING_INFERENCE) == tuple(map(clarification, STAGES))
    for stage in STAGES:
        assert timeouts.pop(inferring(stage)) == (clarification(stage),)
    assert set(timeouts.values()) == {(Phase.DISMISSED,)}
