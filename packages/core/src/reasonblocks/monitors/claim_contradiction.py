"""Detects claims that a tool's result contradicts, values that contradict each other, and assumptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..types import JSON
from .ending import admits, declares_done
from .excerpts import SENTENCE, literal, shortened_line
from .features import ACKNOWLEDGED, Features
from .finding import Finding, settle
from .memory import numbers, rows, table, texts
from .outcome import hash_of
from .recall import Recall
from .wording import quoted, turns, where

HEAD = 1_000
"""Characters of a thought in which statements are looked for."""
MAX_VALUES = 8
"""Statements that are remembered: the newest ones."""
MAX_WORDS = 20
"""Words of the longest sentence that is read as a statement."""
MAX_PARTS = 3
"""Words of the longest value: "3 may 2024"."""

_COPULAS = frozenset("is are was were equals totals amounts comes".split())
_VERBS = _COPULAS | frozenset("costs ships arrives departs leaves starts begins ends opens closes".split())
_MONTHS = frozenset("january february march april may june july august september october november december".split())
_SMALL = frozenset("the a an of for to in on at by from and its this that it there here exactly".split())
_UNSURE = frozenset(
    "if not would could should might maybe perhaps either or let unless assume assuming about around roughly next "
    "current step page epoch round attempt iteration other another first second third last left remaining".split()
)
"""A sentence with one of these is a guess, or counts up: its value may change."""
_REASONS = frozenset(
    "because since but actually correct correction corrected correcting mistake mistaken wrong error earlier before "
    "previous previously first instead rather not however after now updated update new include included includes "
    "including exclude excluded excludes excluding excludes recount recounted recalculated again sorry apologies "
    "apologize said had change changed changes due given with without adding added so therefore thus then found shows "
    "show says according turns turned once if minus plus subtracting".split()
)
"""Words of a thought that gives a reason, good or bad, for another value."""
_STATED = re.compile(rf"\b(?:{'|'.join(sorted(_VERBS))})\b[^.!?\n]{{0,40}}\d")
_DIGIT = re.compile(r"\d")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_EDGES = ".,:;!()[]*_`\"'$€£"


def values_in(features: Features, kept: Mapping[str, JSON]) -> tuple[list[int], Mapping[str, JSON]]:
    """Return the two steps that give different values for one thing, or none, and the new memory.

    A stored row is [hash of the thing, hash of its value, step]. A new result may be the reason for another value, so
    it clears the statements.
    """
    known = rows(kept, "stated")
    fresh = features.result is not None and features.result != kept.get("result")
    if fresh and not known:
        return [], {"result": features.result}
    stated = dict(_stated(features.thought[:HEAD])) if _may_state(features) else {}
    other: list[int] = []
    if stated and _REASONS.isdisjoint(features.vocabulary):
        other = [step for thing, value, step in known if thing in stated and value != stated[thing]][-1:]
    if fresh:
        return _pair(other, features.index), {"result": features.result}
    if stated:
        rest = [row for row in known if row[0] not in stated]
        new = [[thing, value, features.index] for thing, value in stated.items()]
        kept = {**kept, "stated": [*rest, *new][-MAX_VALUES:]}
    return _pair(other, features.index), kept


def _pair(other: list[int], index: int) -> list[int]:
    return [*other, index] if other else []


def _may_state(features: Features) -> bool:
    return (
        not _VERBS.isdisjoint(features.vocabulary)
        and _DIGIT.search(features.thought, 0, HEAD) is not None  # every match of `_STATED` ends with a digit
        and _STATED.search(features.thought, 0, HEAD) is not None
    )


def _stated(text: str) -> Iterator[tuple[int, int]]:
    """Yield hashes of things and their values; a thing with two values in one thought is a list, and left out."""
    found = [statement for sentence in _SENTENCE.split(text) if (statement := _statement(sentence))]
    for thing, value in found:
        if all(other == value for same, other in found if same == thing):
            yield thing, value


def _statement(sentence: str) -> tuple[int, int] | None:
    """Return hashes of the thing and the value of "<thing> <verb> ... <value> ...", or None.

    The value is one run of words with digits, or months. The words around it, small ones aside, name the thing.
    """
    words = [word.strip(_EDGES) for word in sentence.split()]
    verb = next((place for place, word in enumerate(words) if place and word in _VERBS), 0)
    if not verb or len(words) > MAX_WORDS or sentence.endswith("?") or not _UNSURE.isdisjoint(words):
        return None
    value = [place for place in range(verb + 1, len(words)) if _is_value(words[place])]
    if not value or len(value) > MAX_PARTS or value[-1] - value[0] >= len(value):
        return None
    subject = _names(words[:verb])
    if not subject:
        return None
    relation = () if words[verb] in _COPULAS else (words[verb],)
    rest = [word for place, word in enumerate(words[verb + 1 :], verb + 1) if place not in value]
    thing = {*subject, *relation, *_names(rest)}
    return hash_of(" ".join(sorted(thing))), hash_of(" ".join(sorted(_plain(words[place]) for place in value)))


def _is_value(word: str) -> bool:
    return word in _MONTHS or any(map(str.isdigit, word))


def _names(words: list[str]) -> list[str]:
    return [word for word in words if word not in _SMALL and (len(word) > 1 or word.isdigit())]


def _plain(value: str) -> str:
    """Return a number in one form: "1200" for "1,200.00" too."""
    value = value.replace(",", "")
    return value.rstrip("0").rstrip(".") if "." in value else value


NAME = "claim_contradiction"
FAILURE_TYPE = "contradiction"

CLAIM_HEAD = 240
"""Characters at the start of a thought that are about the newest result."""
_LOOKS = frozenset(("read", "search"))
WINDOW = 8
"""Newest steps whose assumptions are counted; a result that says something ends the count."""
ONE = 0.3
"""Score of a single assumption, and of a claim in a step that goes on to a good result: most runs get over either."""

_ASSUMING = frozenset(
    "assume assuming pretend simulate simulating simulated placeholder placeholders made dummy hypothetical "
    "hypothetically mock fake".split()
)
"""Words, one of which is in every thought that `_ASSUMED` matches: without any, that long pattern is not tried."""
_INVENTED = r"(?:dummy|mock|fake|simulated|made[- ]up|hypothetical|placeholders?)"
_ASSUMED = re.compile(
    r"\b(?:i(?:['’]ll| will|['’]m| am)?(?: just| have to| need to| going to)? "
    r"(?:assum(?:e|ing)|pretend|simulat(?:e|ing))"
    r"|let(?:['’]s| me| us) (?:just )?(?:assume|pretend|simulate)|assuming (?:that|the|this|it)"
    r"|we(?:['’]ll| will| can)? (?:assume|pretend|simulate)|hypothetical(?:ly)?"
    rf"|(?:us(?:e|ing)|with|insert(?:ing)?|fill(?:ing)? in) (?:an? |some )?{_INVENTED} "
    r"(?:data|responses?|results?|outputs?|values?|numbers?|figures?))\b"
)
_DONE = (
    r"(?:fixed|resolved|solved|cancell?ed|updated|created|booked|sent|deleted|refunded|changed|added|saved|installed"
    r"|deployed|merged|submitted|completed?|processed|placed|moved|removed|executed|applied|transferred|paid)"
)
_SUCCESS = re.compile(
    r"\b(?:(?:that|this|it|everything|all(?: of (?:the|them))?(?: \d+)?(?: tests)?"
    r"|(?:the )?(?:command|query|tests?|test suite|suite|fix|change|update|call|build)) "
    r"(?:now )?(?:works?|worked|passe[sd]|pass|succeeded|(?:is|are) (?:now )?(?:green|passing|working))"
    r"|(?:was|were|has been|have been|been) success(?:ful|fully)"
    rf"|(?:is|are|was|were|has been|have been) (?:now )?{_DONE}|i(?:['’]ve| have) (?:now )?(?:successfully )?{_DONE}"
    rf"|success(?:ful|fully) {_DONE}|{_DONE} successfully)\b"
)
_DENIED = re.compile(
    r"\b(?:not|\w+n['’]t|fail(?:s|ed|ing|ure|ures)?|errors?|but|however|unfortunately|no|if|should|could|would|let"
    r"|how|why|whether|when|once|until|before|except|understand|ensure|sure|see|verify|check|actually|wait|hmm"
    r"|confirm(?:s|ed)?|reproduce[sd]?|expect(?:ed|s)?)\b"
)


def observe(features: Features, memory: JSON) -> Finding:
    """Return the finding. Its facts: `kind` claim, red, value or assumed; `tool` that failed, or else was called."""
    kept = table(memory)
    failed = numbers(kept, "failed")
    shows = _shows(features)
    assumed = [step for step in numbers(kept, "assumed") if step > features.index - WINDOW and not shows]
    sentence = "" if shows else _assumption(features)
    now = bool(sentence)
    assumed = [*assumed, features.index] if now else assumed
    other, values = values_in(features, table(kept.get("values")))
    left: dict[str, JSON] = {"assumed": assumed} if assumed else {}
    if values:
        left["values"] = dict(values)
    left.update(_failures(features, kept))
    if failed and (claim := _claim(features)):
        score = ONE if shows else 0.8
        facts = {"kind": "claim", "tool": kept.get("tool"), "said": claim}
        return settle(left, memory, score, [*failed, features.index], facts)
    red = failed or numbers(kept, "red")
    tool = kept.get("tool" if failed else "test")
    # an answer that was refused, and then another one, is a new try
    if red and tool != features.tool and declares_done(features) and not admits(features):
        return settle(left, memory, 0.8, [*red, features.index], {"kind": "red", "tool": tool})
    if other:
        return settle(left, memory, 0.75, other, {"kind": "value", "tool": features.tool})
    score = (ONE if len(assumed) == 1 else 0.25 + 0.2 * len(assumed)) if now else 0.0
    return settle(left, memory, score, assumed, {"kind": "assumed", "tool": features.tool, "said": sentence})


def _failures(features: Features, kept: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the failed action of the newest result, if it failed, and the newest test, if it is red.

    A look that failed contradicts no claim, and the complaint about a step without a call is no result of a tool. A
    newer call, even one without a result, may be what a claim is about.
    """
    left: dict[str, JSON] = {}
    acted = bool(features.tool) and features.result is not None
    if features.failing and acted and not (features.roles and features.roles <= _LOOKS):
        left.update(failed=[features.index], tool=features.tool)
    elif not features.tool and kept.get("failed"):
        left.update(failed=kept["failed"], tool=kept.get("tool"))
    if acted and "test" in features.roles:
        left.update({"red": [features.index], "test": features.tool} if features.failing else {})
    elif kept.get("red"):
        left.update(red=kept["red"], test=kept.get("test"))
    return left


def _assumption(features: Features) -> str:
    """Return the agent's sentence that assumes something; "" for none, and for a sentence of the task.

    The first message often only restates the task.
    """
    if not features.index or _ASSUMING.isdisjoint(features.vocabulary):
        return ""
    found = _ASSUMED.search(features.thought)
    sentence = _sentence(features, found) if found else ""
    return "" if sentence.strip("…") in features.task else sentence


def _shows(features: Features) -> bool:
    """Return True if the step itself got a result that says something, or changed a file."""
    said = features.lengths[2] >= ACKNOWLEDGED or features.green
    return (features.changed and bool(features.targets)) or (said and not (features.failing or features.empty))


def _claim(features: Features) -> str:
    """Return the agent's sentence that claims success at the start of its thought, which is about the last result."""
    head = features.thought[:CLAIM_HEAD]
    found = _SUCCESS.search(head)
    return _sentence(features, found) if found and _DENIED.search(head) is None else ""


def _sentence(features: Features, found: re.Match[str]) -> str:
    """Return the sentence around a match as the agent wrote it; "" if letters in lower case differ in number."""
    if len(features.said) != len(features.thought):
        return ""
    before = [end.end() for end in _SENTENCE.finditer(features.said, 0, found.start())]
    after = _SENTENCE.search(features.said, found.end())
    return shortened_line(features.said[before[-1] if before else 0 : after.start() if after else None], SENTENCE)


def say(finding: Finding, rung: int, recall: Recall) -> str:
    """Return the text: the evidence (rung 1), a firmer and shorter one (2), or a call for another kind of step (3)."""
    kind, said = texts(finding.facts, "kind", "said")
    if kind == "claim":
        evidence = _claimed(f"said {literal(said)}", finding.steps, rung, recall) if said else ""
    elif kind == "red":
        evidence = _claimed("declared the work done", finding.steps, rung, recall)
    elif kind == "value":
        evidence = f"You have given different values for the same thing ({turns(recall, finding.steps, 'message')})."
    else:
        place = f" ({turns(recall, finding.steps[-1:], 'message')})" if rung == 1 else ""
        evidence = f"You have put an assumption in place of a result: {literal(said)}{place}." if said else ""
    return f"{evidence} {_NEXT[rung][kind]}" if evidence else ""


def _claimed(claim: str, steps: Sequence[int], rung: int, recall: Recall) -> str:
    failed = [action for action in recall.at(steps[:-1]) if action.failed and action.shown]
    if not failed or recall.is_cured(failed[-1]):
        return ""
    place = f" ({where(recall, failed[-1:])})" if rung == 1 else ""
    said = quoted(failed[-1]) if rung == 1 else ""
    return f"You have {claim}, but before that {failed[-1].shown}{place} failed{said}."


_NEXT = {
    1: {
        "claim": "Look at that error again before you build on it.",
        "red": "Resolve that error, or say plainly in the answer that it is not resolved.",
        "value": "Look the value up once more where it comes from, and say which one holds and why.",
        "assumed": "Replace the assumption that matters most by a tool call that shows the real value.",
    },
    2: {
        "claim": "Look at that error now.",
        "red": "Resolve that error now, or report it.",
        "value": "Look it up now and keep to what you find.",
        "assumed": "Get the real value from a tool now, or say that it cannot be had.",
    },
    3: {
        "claim": "Take a step of another kind: a check whose result shows what works and what does not.",
        "red": "Take a step of another kind: a check whose result shows it, or an answer that says what failed.",
        "value": "Take a step of another kind: a call whose result shows the value.",
        "assumed": "Take a step of another kind: a call whose result shows the value, or a question to the user.",
    },
}
