"""Describes a run's values in words for its page."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from reasonblocks.engine.recovery import is_judged
from reasonblocks.types import StepLogEntry, ToolCall
from reasonblocks.types.outcomes import ABANDONED
from reasonblocks.util.json import canonical
from reasonblocks.util.text import count_noun

from . import text
from ._chart import MARKS, kinds_of
from .line import RunLine
from .page import MONITOR, Kind, Row, RunPage, Told, Verdict

MOST_CALLS = 32
"""Parallel calls of a step that a page shows."""
MOST_ARGUMENTS = 24
"""Arguments of a call that are shown by name."""
GATES: Mapping[str, str] = {
    "quiet": "too few dead steps for a text",
    "cap": "the run has had all its texts",
    "cooldown": "the last text was too few steps before",
    "duplicate": "the text would repeat the last one",
    "unavailable": "no evaluation",
    "final": "no call follows",
    "inject": "a monitor's text was chosen",
}
"""The names of the gates, with their meanings."""
SKIPS: Mapping[str, str] = {
    "auxiliary": "not a step",
    "end": "the state END is only observed",
    "fault": "steering failed",
    "disabled": "steering is off",
    "fast": "no lessons in FAST",
    "unavailable": "a backend gave no answer",
}
UNENDED: Mapping[str, str] = {"open": "unfinished", "unknown": "outcome unknown"}
"""The words of a run without an outcome: a log that goes on, and a recording."""
TOLD_WORDS: Mapping[bool | None, str] = {False: "told", True: "would be told", None: "told, or would be"}
"""The words for texts, by whether the agent has seen none of them; None for a list with both kinds of runs."""
_OPAQUE = re.compile(r"(?:[A-Za-z]{1,12}[-_:./])?(?:[0-9A-Fa-f-]{16,}|[0-9A-HJKMNP-TV-Z]{26})")
"""An id without words: a hash, a UUID or a ULID, possibly with a prefix."""
_JUDGES = tuple(
    (re.compile(known), words)
    for known, words in (
        (r"own: silent, (\d+) runs", r"the agent's own \1 runs: no text, it gets out of dead steps by itself"),
        (r"own: (\d of \d), (\d+) runs", r"the agent's own \2 runs: a text once \1 steps are dead"),
        (r"own: ?(\d+) runs.*", r"the agent's own \1 runs"),
        (r"explores: (\d+) runs", r"nothing: monitors are silent in this run, to learn from it beside \1 others"),
        (r"patience: (\d of \d)", r"the program's option: a text once \1 steps are dead"),
    )
)
"""The names of a patience, with their words."""
LEGEND: Mapping[Kind, str] = {
    "monitor": "monitor's text",
    "lesson": "lesson",
    "rules": "standing rules",
    "operator": "operator's note",
    "budget": "what is left of the budget",
    "withheld": "withheld",
    "look": "second look",
    "stop": "stopped",
    "asked": "a person was asked",
}
UNHEARD_LEGEND: Mapping[Kind, str] = {"stop": "would be stopped", "asked": "a person would be asked"}
"""The marks that mean something else in a run whose agent has seen no text."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A name and its value, and a note in small print."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of a text, in words. `kind` is "good", "late", "bad" or "unknown"."""

    kind: str
    sign: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A text that the agent was told, with the reason for it and its effect."""

    row: Row
    told: Told
    why: str
    effect: Effect


def cards(page: RunPage) -> list[Card]:
    """Return the texts of a run without its standing rules, in the order of the calls."""
    found = [(row, told) for row in page.rows for told in row.told if not told.standing]
    return [Card(row=row, told=told, why=_why(row, told), effect=_effect(page, row, told)) for row, told in found]


def standing(page: RunPage) -> Card | None:
    """Return the first standing rules of a run."""
    found = ((row, told) for row in page.rows for told in row.told if told.standing)
    return next((Card(row=row, told=told, why="", effect=_NOT_JUDGED) for row, told in found), None)


_NOT_JUDGED = Effect(kind="unknown", sign="·", words="not judged")


def _why(row: Row, told: Told) -> str:
    if told.source != MONITOR:
        return text.preview(", ".join(told.patterns))
    fired = ", ".join(
        f"{text.plain(name)} {text.number(row.scores[name])}" if name in row.scores else text.plain(name)
        for name in row.entry.monitors_fired
    )
    return text.preview(": ".join(filter(None, (row.entry.failure_type, fired))))


def _effect(page: RunPage, row: Row, told: Told) -> Effect:
    verdict = page.verdicts.get(row.number)
    if told.look:
        return Effect(kind="unknown", sign="·", words="no call follows in this recording")
    if verdict is None:
        return Effect(kind="unknown", sign="·", words=f"Not judged: {_why_not(page, row)}.")
    without = ", without the text" if told.withheld or page.replayed else ""
    after = f"after {count_noun(verdict.steps, 'step')}"
    if verdict.at_end:
        doubted = ", in doubt" if page.in_doubt else ""
        state = f"the run ended {after} as {text.preview(page.outcome, 40) or 'unknown'}{doubted}"
    else:
        state = f"{after}, {_state_of(page, row.number + verdict.steps)}"
    if verdict.recovered:
        return Effect(kind="good", sign="✓", words=f"Recovered{without}: {state}.")
    end = _end_of_trouble(page, row, verdict)
    if end is None:
        return Effect(kind="bad", sign="✗", words=f"No recovery{without}: {state}.")
    late = f"Late recovery{without}, after {count_noun(end - row.number, 'step')}"
    return Effect(kind="late", sign="◔", words=f"{late}: {state}.")


def _end_of_trouble(page: RunPage, row: Row, verdict: Verdict) -> int | None:
    """Return the first call without trouble after the verdict, None if there is none."""
    calls = page.untroubled
    at = bisect_right(calls, row.number + verdict.steps)
    return calls[at] if at < len(calls) else None


def _why_not(page: RunPage, row: Row) -> str:
    if not is_judged(row.entry.monitors_fired, row.state, row.entry.composite):
        return "the run was not in trouble"
    if page.outcome == ABANDONED:
        return "the run was abandoned"
    if page.outcome_kind == "unknown":
        return "the run ended within three steps, and its outcome is unknown"
    return "the run has not gone on for three steps" if not page.outcome else "its end is not known"


def _state_of(page: RunPage, number: int) -> str:
    row = page.by_number.get(number)
    if row is None:
        return "the run continued"
    names = text.preview(", ".join(row.entry.monitors_fired))
    fired = f"{names} still fired" if names else "no monitor fired"
    return f"{fired} and the state was {text.plain(row.state)}"


def heading(page: RunPage) -> str:
    """Return the name of a run for its title: its id, or for an id without words its task or agent."""
    name = text.preview(page.run_id, 160)
    if name and not _OPAQUE.fullmatch(page.run_id):
        return name
    return text.preview(page.task, 110) or text.preview(page.agent, 80) or name or "run"


def is_task(page: RunPage) -> bool:
    """Return True if a run's heading is its whole task."""
    return bool(_OPAQUE.fullmatch(page.run_id)) and heading(page) == page.task.strip()


def outcome_word(run: RunPage | RunLine) -> str:
    """Return a run's outcome in words, with its doubts if it is a success."""
    word = text.preview(run.outcome, 60) or run.status or UNENDED.get(run.outcome_kind, UNENDED["unknown"])
    return f"{word}, in doubt" if run.in_doubt else word


def told_count(page: RunPage) -> str:
    """Return what the texts of a run are, after their number: "texts: 5 of 5 monitor texts, 1 lesson"."""
    if page.monitor_texts == len(page.told):
        return f"of {page.cap} monitor texts"
    others = Counter(_NOUNS.get(told.who, "other text") for _, told in page.told if told.source != MONITOR)
    parts = [f"{page.monitor_texts} of {page.cap} monitor texts"]
    parts += [count_noun(number, noun) for noun, number in others.items()]
    return f"{'text' if len(page.told) == 1 else 'texts'}: {', '.join(parts)}"


_NOUNS = {"lesson": "lesson", "operator": "operator's note", "budget": "budget line"}


def unjudged(page: RunPage) -> str:
    """Return a sentence about the steps that were not evaluated, "" if all were."""
    if not page.unjudged:
        return ""
    verb = "was" if page.unjudged == 1 else "were"
    faults = sum(row.unjudged and row.entry.skipped_reason == "fault" for row in page.rows)
    why = f" ({count_noun(faults, 'fault')})" if faults else ""
    return f"{page.unjudged:,} of {count_noun(page.steps, 'step')} {verb} not evaluated{why}: nothing was judged there."


def about(page: RunPage) -> list[Fact]:
    """Return the small print under a run's title."""
    judged_by = page.judged_by if page.judged_by != "shipped" else ""
    judging = judge(judged_by)
    named = (
        ("model", ", ".join(page.models), ""),
        ("framework", page.framework, ""),
        ("started", text.moment(page.started) if page.started is not None else "", ""),
        ("file", page.place, ""),
        ("moment of texts judged by", judging, judged_by if judging != judged_by else ""),
        ("parent run", page.parent, ""),
        ("experiment", page.experiment, ""),
    )
    return [Fact(name, text.preview(value), text.preview(note)) for name, value, note in named if value]


def judge(judged_by: str) -> str:
    """Return in words what decided when the agent was told something: the name of a patience, or an unknown name."""
    return next((found.expand(words) for known, words in _JUDGES if (found := known.fullmatch(judged_by))), judged_by)


def mode(page: RunPage) -> str:
    if page.replayed:
        return "replayed, observed" if page.observed else "replayed"
    return "observed" if page.observed else "steered"


def legend(page: RunPage) -> list[tuple[Kind, str]]:
    """Return the marks that this run has, with their meanings."""
    found = {kind for row in page.rows for kind in kinds_of(row)}
    words = {**LEGEND, **UNHEARD_LEGEND} if page.unheard else LEGEND
    return [(kind, words[kind]) for kind in MARKS if kind in found]


def gate_word(row: Row) -> str:
    """Return the gate of a call, or the reason for which its step was skipped."""
    skipped = row.entry.skipped_reason
    return text.preview((skipped if skipped != "fast" else None) or row.entry.gate_decision or "", 24)


def facts_of(row: Row) -> Iterator[Fact]:
    """Yield the facts of a call that its row in the table has no room for."""
    entry = row.entry
    parts = asdict(entry.difficulty_parts) if entry.difficulty_parts is not None else {}
    known = entry.input_tokens is not None or entry.output_tokens is not None
    tokens = [
        (None if known else entry.tokens, "in all"),
        (entry.input_tokens, "in"),
        (entry.output_tokens, "out"),
        (entry.cache_read_tokens, "from the cache"),
    ]
    named = (
        ("gate", _explained(entry.gate_decision, GATES)),
        ("skipped", _explained(entry.skipped_reason, SKIPS)),
        ("stopped", entry.stop),
        ("would be stopped", entry.withheld_stop),
        ("a person was asked", entry.interrupt),
        ("a person would be asked", entry.withheld_interrupt),
        ("failure type", entry.failure_type),
        ("composite", "" if entry.composite is None else text.number(entry.composite)),
        ("difficulty from", ", ".join(f"{name} {text.number(value)}" for name, value in parts.items())),
        ("lessons found", _retrieved(entry.retrieved)),
        ("left out", ", ".join(entry.injections_dropped)),
        ("called", entry.model_id),
        ("routed for", entry.route),
        ("route withheld", entry.withheld_route),
        ("effort", entry.effort),
        ("effort withheld", entry.withheld_effort),
        ("advisor", "" if entry.advisor_ms is None else _advisor(entry)),
        ("tokens", ", ".join(f"{text.count(number)} {name}" for number, name in tokens if number is not None)),
        ("cost", "" if entry.cost_usd is None else text.dollars(entry.cost_usd)),
        ("model latency", "" if entry.latency_ms is None else f"{text.milliseconds(entry.latency_ms)} ms"),
        ("steering time", f"{text.milliseconds(entry.overhead_ms)} ms" if entry.overhead_ms else ""),
        ("error of the call", entry.error),
    )
    for name, value in named:
        if value:
            yield Fact(name, text.preview(value, 300))


def _advisor(entry: StepLogEntry) -> str:
    """Return how long the advisor was awaited, and what it cost."""
    cost = "" if entry.advisor_tokens is None else f", {text.count(entry.advisor_tokens)} tokens"
    return f"asked, {text.milliseconds(entry.advisor_ms or 0.0)} ms{cost}"


def _explained(word: str | None, words: Mapping[str, str]) -> str | None:
    return f"{word}: {words[word]}" if word and word in words else word


def _retrieved(retrieved: Mapping[str, tuple[str, ...] | None]) -> str:
    found = ((tier, "no answer" if ids is None else ", ".join(ids)) for tier, ids in retrieved.items())
    return "; ".join(f"{tier}: {ids}" for tier, ids in found if ids)


def arguments(call: ToolCall) -> list[tuple[str, str]]:
    """Return the arguments of a call, each as its name and its value as text; one without a name is the whole."""
    given = call.arguments
    if isinstance(given, dict) and 0 < len(given) <= MOST_ARGUMENTS:
        return [(str(name), value if isinstance(value, str) else canonical(value)) for name, value in given.items()]
    whole = text.arguments(call)
    return [("", whole)] if whole else []


def texts_of(row: Row) -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of a call's row, as the table of steps has them."""
    step = row.step
    if step is not None:
        yield "reasoning", step.reasoning or ""
        yield "thought", step.thought or ""
        for at, call in enumerate(step.tool_calls):
            yield from ((f"arguments-{at}-{place}", value) for place, (_, value) in enumerate(arguments(call)))
        yield from ((f"output-{at}", result.output) for at, result in enumerate(step.tool_results))
    yield from ((f"told-{at}", told.text) for at, told in enumerate(row.told))
