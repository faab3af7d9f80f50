"""Explains the terms of the dashboard on a page of its own."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from reasonblocks.engine.fsm import Thresholds
from reasonblocks.engine.gates import MONITOR_CAP
from reasonblocks_workbench.report.view import GATES

from ._pages import render
from ._visit import Visit

_LEVELS = Thresholds()
WORDS: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
    (
        "A run",
        (
            ("run", "One execution of an agent, from its task to its end."),
            ("step", "One thought, its actions and their results. Call n to the model is decided from step n − 1."),
            (
                "difficulty",
                "A number from 0 to 1: how hard the last step was. It is high if the step brought nothing new.",
            ),
            ("outcome", "The end that the program reported. A run without one is live, and silent after ten minutes."),
            (
                "mode",
                "A steered run gets the texts. For an observed run, they are recorded and not shown to the agent.",
            ),
        ),
    ),
    (
        "States",
        (
            ("INIT", "The first call."),
            ("NORMAL", "The usual state."),
            ("FAST", f"The last {_LEVELS.fast_window} steps were easy: all below {_LEVELS.fast_threshold:g}."),
            (
                "SLOW",
                f"The last {_LEVELS.slow_window} steps were hard: all above {_LEVELS.slow_threshold:g}. The agent "
                "should slow down and think; the name is not about time.",
            ),
            ("SKIP", f"The last {_LEVELS.skip_window} steps were very hard: all above {_LEVELS.skip_threshold:g}."),
            ("END", "Steering only observes from here on."),
        ),
    ),
    (
        "Texts for the agent",
        (
            ("dead step", "A step without which the run would be where it is, such as the same call again."),
            ("patience", "How many of the newest steps have to be dead before the agent is told, such as 4 of 5."),
            (
                "judged by",
                "The source of the patience of a run, if it is not the default: the agent's own runs and their number, "
                "or an option of the program. `own: 4 of 5, 30 runs` was learned from 30 runs of this agent.",
            ),
            ("monitor", "A detector of one kind of trouble, such as a loop, which fires at a dead step."),
            ("failure type", "The kind of trouble that the monitors agree on."),
            ("told", f"The agent read the text in a request. A run is told at most {MONITOR_CAP} texts of monitors."),
            ("would be told", "The text was recorded for an observed run, and the agent has not read it."),
            (
                "recovered",
                "Three steps after a text, no monitor fired and the state was neither SLOW nor SKIP; or the run had "
                "succeeded by then. Only texts for runs in trouble are judged.",
            ),
            (
                "budget",
                "The calls or tokens that a run may use. The agent is told what is left; then the run ends.",
            ),
            ("operator's note", "A text that a person sends to a live run. The agent is told it once."),
        ),
    ),
    ("Gates: why a call got a text, or none", tuple(GATES.items())),
    (
        "Patterns",
        (
            ("e1", "Lessons: what earlier runs of this org have shown for similar tasks."),
            ("e2", "Interventions: what to do against one failure type."),
            ("e3", "Standing rules, which every run is told."),
            ("shared", "Comes with ReasonBlocks, and is the same for all orgs."),
            ("off", "Is kept, and never told."),
        ),
    ),
    (
        "Memory",
        (
            ("finding", "A note of an agent about a codebase, which later runs recall."),
            ("codebase", "The scope of findings, such as a repository. Each has an id, which its runs share."),
            ("score", "A number from 0 to 1: how near a finding is to the words of a search."),
        ),
    ),
    (
        "Threads: what a person decides",
        (
            ("thread", "One matter to decide, such as a stuck run or an action that an agent proposes."),
            ("card", "The question of a thread to a person. A thread has at most one open card."),
            ("stage", "What is sought at present: first the intent, then the context, then the action."),
            ("proposal", "What an agent or an inference suggests for a stage."),
            ("consent", "The card before an action runs. An approval holds for exactly the action that it shows."),
            ("policy", "The rules by which nobody is asked. A thread's own rules can only be stricter."),
            ("part", "A thread that another thread was split into."),
        ),
    ),
    (
        "Experiments",
        (
            ("unit", "The thing that is steered or not: a run, or all runs of a user."),
            ("arm", "The units that are steered (on), or only observed (off)."),
            ("interval", "A range that contains the true value in 95 of 100 such experiments."),
            ("p-value", "The probability of a split between the arms at least as uneven as this one, by chance alone."),
        ),
    ),
)


def words(visit: Visit) -> Response:
    """Show the meanings of all terms."""
    return render(visit, "words.html", "", words=WORDS)
