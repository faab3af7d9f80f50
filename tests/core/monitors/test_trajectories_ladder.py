"""After the first text: an agent that complies is left alone, one that does not is told more firmly, then not at all."""

# One step of a trajectory is one line, however long, so that a run reads from top to bottom.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, cycle, islice

import pytest

from reasonblocks.types import Step
from tests.core.monitors.trajectories import STUCK, Stuck, Told, bash, call, play, react, say

INVOICES = "a function agent makes the same call again and again"
COMPOSER = "a react agent searches the same words again and again"
POETRY = "a shell agent runs the same failing command again and again"
GATEWAY = "a shell agent goes round three commands"

TURNS: Mapping[str, list[Step]] = {
    INVOICES: [
        call("No invoices are listed for 2024, so the charges must come from elsewhere. The payments then.", "list_payments", {"payments": [{"id": "P-9", "amount": "80.00"}, {"id": "P-10", "amount": "80.00"}]}, customer="C-118"),
        call("Two payments of 80.00. When was the first?", "get_payment", {"id": "P-9", "at": "2024-02-01T09:12", "via": "card"}, id="P-9"),
        call("And the second?", "get_payment", {"id": "P-10", "at": "2024-02-01T09:13", "via": "card"}, id="P-10"),
        call("One minute apart. Did the shop send the order twice?", "list_orders", {"orders": ["O-31", "O-32"]}, customer="C-118"),
        call("Comparing the two orders.", "get_order", {"id": "O-31", "key": "k-77"}, id="O-31"),
        call("", "get_order", {"id": "O-32", "key": "k-77"}, id="O-32"),
        say("C-118 was charged twice because orders O-31 and O-32 carry the same cart and were sent one minute apart."),
    ],
    COMPOSER: [
        react("The search knows no such opera. A list of operettas may name it.", "Search", "List of operettas", "Operettas by year, 1855 to 1935."),
        react("Looking for the title in the list.", "Lookup", "Nachtfalter", "(Result 1 / 1) 1887: Die Nachtfalter, E. Korn, Graz"),
        react("E. Korn, in Graz. Who is that?", "Search", "Emil Korn", "Emil Korn (1851-1919) was an Austrian composer."),
        react("Does his page speak of the first performance?", "Lookup", "Graz", "(Result 1 / 2) conductor in Graz from 1884"),
        react("Which house was it?", "Search", "Stadttheater Graz 1887", "The Stadttheater am Franzensplatz opened in 1864."),
        react("I have both parts.", "Finish", "Emil Korn; Graz, 1887", "Answer accepted."),
    ],
    POETRY: [
        bash("There is no poetry here. Which Python is there, and does it have pip?", "python3 -m pip --version", "pip 24.0 from /usr/lib/python3/dist-packages/pip (python 3.12)"),
        bash("pip is there, so I install from the project file.", "python3 -m pip install -e .", "Successfully installed service-0.4.0"),
        bash("Starting it.", "make dev", "uvicorn running on http://127.0.0.1:8000"),
        bash("Does it answer?", "curl -s localhost:8000/health", '{"status": "ok"}'),
        bash("And its tests?", "python3 -m pytest -q", "18 passed in 0.80s"),
        say("The service runs locally at port 8000, installed by pip."),
    ],
}  # fmt: skip


def until_told(trouble: Stuck) -> list[Step]:
    """The run up to the step after which the agent is told for the first time."""
    told = play(trouble.task, trouble.steps).told
    assert told, "nothing was said"
    return trouble.steps[: told[0].step + 1]


@pytest.mark.parametrize("name", TURNS)
def test_an_agent_that_complies_is_not_told_off_again(name: str) -> None:
    trouble = STUCK[name]
    assert len(play(trouble.task, [*until_told(trouble), *TURNS[name]]).told) == 1


def relapsed(name: str) -> tuple[list[Told], int, int]:
    """What is said when the agent complies for five steps and falls back; trouble steps to the first and the second."""
    trouble = STUCK[name]
    before = until_told(trouble)
    good = TURNS[name][:5]
    told = play(trouble.task, [*before, *good, *trouble.stuck]).told
    assert len(told) > 1, "nothing was said of the relapse"
    return told, len(before) - len(trouble.before), told[1].step + 1 - len(before) - len(good)


@pytest.mark.parametrize("name", TURNS)
def test_a_relapse_is_told_sooner_and_by_what_has_come_since(name: str) -> None:
    told, first, second = relapsed(name)
    assert second <= max(1, first - 1)
    assert told[1].text != told[0].text


def obstinate(name: str) -> list[Step]:
    """A run that goes on like this for forty steps."""
    trouble = STUCK[name]
    return list(islice(chain(trouble.before, cycle(trouble.stuck)), 40))


@pytest.mark.parametrize("name", [INVOICES, COMPOSER, POETRY, GATEWAY])
def test_a_run_is_told_five_times_at_most(name: str) -> None:
    assert len(play(STUCK[name].task, obstinate(name)).told) <= 5
