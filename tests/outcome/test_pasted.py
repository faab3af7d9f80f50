"""Pasted: a line is found without the number that `view` shows before it, and only so."""

from __future__ import annotations

import pytest
from _outcome.environment import Call, ToolError
from _outcome.policies import outcome, reference_wins
from _outcome.tasks.pasted import WORDINGS, Pasted

SEEDS = range(60)


def viewed(seed: int) -> tuple[Pasted, str, list[tuple[str, str]]]:
    """Return the environment after a view, the task, and each line as it was shown and as the file has it."""
    pasted = Pasted()
    task = pasted.reset(seed)
    shown = pasted.call("view", {}).split("\n")
    lines = pasted.choices()["edit.old"][len(shown) :]
    return pasted, task, [*zip(shown, lines)]


def test_a_line_with_its_number_is_not_found_and_without_it_is() -> None:
    for seed in SEEDS:
        pasted, _, lines = viewed(seed)
        new = pasted.choices()["edit.new"][0]
        for shown, line in lines:
            assert shown != line
            assert shown.endswith(line)
            with pytest.raises(ToolError) as refusal:
                pasted.call("edit", {"old": shown, "new": new})
            assert "number" not in str(refusal.value)
        assert pasted.call("view", {}).split("\n") == [shown for shown, _ in lines]
        call = pasted.reference()
        assert call is not None
        pasted.call(*call)
        assert call.arguments["new"] in pasted.call("view", {})


def test_a_new_line_with_a_pasted_number_spoils_the_file_until_it_is_mended() -> None:
    pasted, _, _ = viewed(0)
    call = pasted.reference()
    assert call is not None
    spoiled = f"7: {call.arguments['new']}"
    pasted.call("edit", {"old": call.arguments["old"], "new": spoiled})
    assert pasted.reference() == Call("edit", {"old": spoiled, "new": call.arguments["new"]})
    assert reference_wins(pasted, pasted.max_steps)


def test_a_text_that_occurs_twice_is_not_replaced() -> None:
    pasted, task, lines = viewed(0)
    spoiled, kept = [line for _, line in lines if line.partition(" ")[0] not in task.split()][:2]
    pasted.call("edit", {"old": spoiled, "new": kept})
    with pytest.raises(ToolError):
        pasted.call("edit", {"old": kept, "new": "x"})
    assert not reference_wins(pasted, pasted.max_steps)
    assert not pasted.done


def test_the_words_for_a_text_that_is_not_found_vary_by_seed() -> None:
    said = {outcome(viewed(seed)[0], Call("edit", {"old": "roof", "new": "x"})).partition(" in ")[0] for seed in SEEDS}
    assert len(said) == len(WORDINGS)
