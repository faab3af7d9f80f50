"""The phrases of which monitors make their texts. Each is checked against the remembered actions that it is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from .recall import Action, Recall

MAX_PLACES = 4
"""Places in the history that a text lists; of more it names the newest only."""

_NO_SUCH = re.compile(r"\b(?:not f(?:ou|i)nd|no such|unknown|not exist|doesn't exist|invalid|no \w+)\b", re.IGNORECASE)
"""Matches an error that complains of a value, so that another value may be right."""
_ASIDE = ", times and ids aside"
"""Ends a statement about calls or results that are equal with times and ids masked, but not exactly."""


def places(distances: Sequence[int], unit: str) -> str:
    """Return "your last call, 2 and 5 calls ago" for 1, 2 and 5; "your last 3 calls" for 1, 2 and 3."""
    near = sorted({*distances})
    if near == [*range(1, len(near) + 1)]:
        return f"your last {unit}" if len(near) == 1 else f"your last {len(near)} {unit}s"
    if len(near) > MAX_PLACES:
        return f"most recently {places(near[:1], unit)}"
    if near[0] == 1:
        return f"your last {unit}, {joined([str(distance) for distance in near[1:]])} {unit}s ago"
    return f"{joined([str(distance) for distance in near])} {unit}s ago"


def joined(parts: Sequence[str]) -> str:
    """Return "a", "a and b", or "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def where(recall: Recall, actions: Sequence[Action]) -> str:
    """Return the place of actions in the history, in calls, or in turns if there were parallel calls since."""
    since = recall.actions[-max(map(recall.ago, actions)) :]
    if any(action.several for action in since):
        return places([recall.index - action.step + 1 for action in actions], "turn")
    return places([recall.ago(action) for action in actions], "call")


def turns(recall: Recall, steps: Sequence[int], unit: str = "turn") -> str:
    """Return the place of steps in the history, in turns; each step is one answer of the agent."""
    return places([recall.index - step + 1 for step in steps], unit)


def times(recall: Recall, count: int) -> str:
    """Return "3 times", and of how many calls if some are forgotten."""
    return f"{count} times" + (
        f" in your last {len(recall.actions)} calls" if recall.calls > len(recall.actions) else ""
    )


def quoted(action: Action) -> str:
    """Return ': "the result's line"', or nothing if it may not be quoted."""
    return f': "{action.line}"' if action.line else ""


def same_results(actions: Sequence[Action]) -> str:
    """Return ", each time with the same result: ..." as far as it holds for these actions; else nothing."""
    last = actions[-1]
    if any(action.result != last.result for action in actions):
        return ""
    if not last.exact_result:
        return ", each time without a result" if not any(action.exact_result for action in actions) else ""
    noun = "error" if all(action.failed for action in actions) else "result"
    if all(action.exact_result == last.exact_result for action in actions):
        return f", each time with the same {noun}{quoted(last)}"
    return f", each time with the same {noun}{_ASIDE}{quoted(last).replace(':', '; last:', 1)}"


def repeated(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about a call that was made again with the same result; "" if the actions do not show it."""
    found = recall.at(steps)
    if len(found) < 2 or not found[-1].shown:
        return ""
    last = found[-1]
    exact = recall.like(last)
    if len(exact) > 1:
        return _repeated_exactly(recall, exact, rung)
    near = [action for action in recall.actions if action.call == last.call]
    if len(near) < 2:
        return ""
    how = same_results(near) if rung == 1 else ""
    return f"You have made nearly the same call {times(recall, len(near))}, the last being {last.shown}{how}."


def _repeated_exactly(recall: Recall, exact: Sequence[Action], rung: int) -> str:
    last = exact[-1]
    named = f"You have called {last.shown} {times(recall, len(exact))}"
    if rung == 1:
        return f"{named} ({where(recall, exact)}){same_results(exact) or _newest_results(exact)}."
    if rung == 2 or not (last.exact_result and same_results(exact)):
        return f"{named}."
    if last.line and all(action.exact_result == last.exact_result for action in exact):
        return f'Known by now: {last.shown} brings "{last.line}".'
    return f"Known by now: {last.shown} brings the same each time."


def _newest_results(actions: Sequence[Action]) -> str:
    """Return the phrase for the newest actions that brought the same, if at least two did."""
    same = [actions[-1]]
    for action in actions[-2::-1]:
        if action.result != actions[-1].result:
            break
        same.insert(0, action)
    said = same_results(same) if len(same) > 1 else ""
    return said.replace("each time", f"the last {len(same)} times", 1)


def who(recall: Recall, actions: Sequence[Action], noun: str = "calls") -> str:
    """Return "Your last 3 calls", or "3 calls (your last call, 3 and 5 calls ago)"; `noun` replaces "calls"."""
    place = where(recall, actions)
    count = len(actions)
    return f"Your last {count} calls" if place == f"your last {count} calls" else f"{count} {noun} ({place})"


def circle(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about a circle of calls that ends with the newest of these steps, or ""."""
    actions = [action for action in recall.actions if steps and action.step <= steps[-1]]
    outcomes = [action.outcome for action in actions]
    for period in range(2, len(outcomes) // 2 + 1):
        if outcomes[-period:] == outcomes[-2 * period : -period] and len({*outcomes[-period:]}) > 1:
            around = who(recall, actions[-2 * period :])
            if rung == 1:
                return f"{around} went twice around the same circle of {period} calls, with the same results."
            return f"{around} went around one circle of {period} calls."
    return ""


def failures(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about calls that failed, or ""."""
    failed = [action for action in recall.at(steps) if action.failed]
    if len(failed) < 2:
        return ""
    last = failed[-1]
    subject, said = who(recall, failed), quoted(last) if rung == 1 else ""
    if not last.error or any(action.error != last.error for action in failed):
        return f"{subject} failed{', the last one with' + said if said else ''}."
    if _all_equal([action.exact_result for action in failed]):
        return f"{subject} ended in the same error{said}."
    aside = ", names and numbers aside"
    return f"{subject} ended in the same error{aside}{'; the last one' + said if said else ''}."


def _all_equal(values: Sequence[object]) -> bool:
    return len({*values}) == 1


def same_result(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about different calls with the same result, or ""."""
    found = recall.at(steps)
    same = [action for action in found if action.exact_result and action.result == found[-1].result]
    if len(same) < 2 or len({(action.call, action.exact_call) for action in same}) < len(same):
        return ""
    aside = "" if all(action.exact_result == same[-1].exact_result for action in same) else _ASIDE
    shown = quoted(same[-1]) if rung == 1 and not aside else ""
    subject = who(recall, same, "different calls")
    return f"{subject}{' were all different and' * subject.startswith('Your')} got the same result{aside}{shown}."


def nothing_found(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about searches without a result, or ""."""
    empty = [action for action in recall.at(steps) if action.is_empty]
    if len(empty) < 2 or not empty[-1].shown:
        return ""
    last = f", the last one being {empty[-1].shown}" if rung == 1 else ""
    return f"{who(recall, empty, 'searches')} found nothing{last}."


def nothing_new(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about results that brought nothing new, or ""."""
    found = recall.at(steps)
    if len(found) < 2:
        return ""
    return f"{who(recall, found)} brought next to nothing that was not in earlier {'results' if rung == 1 else 'ones'}."


def unread(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about messages in which no call could be read; they are not among the remembered actions."""
    if len(steps) < 2 or any(action.step in steps for action in recall.actions):
        return ""
    return f"It seems that no call could be read in {len(steps)} of your messages ({turns(recall, steps, 'message')})."


def nothing_gained(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about calls that brought errors or nothing new, or ""."""
    found = recall.at(steps)
    return f"{who(recall, found)} brought only errors or what was in earlier results." if len(found) > 1 else ""


def had_before(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about calls that brought the same result before, or ""."""
    before = [action.outcome for action in recall.actions]
    again = [action for action in recall.at(steps) if action.outcome in before[: len(before) - recall.ago(action)]]
    if len(again) < 2 or not again[-1].shown:
        return ""
    last = f", the last one being {again[-1].shown}" if rung == 1 else ""
    return f"{who(recall, again)} were made before, with the same results{last}."


def in_vain(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about calls that failed or brought a result that was there before, or ""."""
    before = [action.result for action in recall.actions]
    vain = [
        action
        for action in recall.at(steps)
        if action.failed or action.result in before[: len(before) - recall.ago(action)]
    ]
    if len(vain) < 2:
        return ""
    if all(action.failed for action in vain):
        return failures(recall, steps, rung)
    return f"{who(recall, vain)} failed, or brought a result that was there before."


def changed_again(recall: Recall, steps: Sequence[int], rung: int) -> str:
    """Return the sentence about a change that was made again, or ""."""
    made = [action for action in recall.at(steps) if action.edits]
    if len(made) < 2 or not made[-1].shown:
        return ""
    exact = [action for action in recall.like(made[-1]) if not action.failed]
    if len(exact) < 2:
        return f"You have made nearly the same change {times(recall, len(made))}, the last being {made[-1].shown}."
    place = f" ({where(recall, exact)})" if rung == 1 else ""
    return f"You have made the same change {times(recall, len(exact))}{place}: {exact[-1].shown}."


Phrase = Callable[[Recall, Sequence[int], int], str]
"""Makes the evidence sentence from the actions of these steps, for a rung; "" if they do not show it."""

STALE: Mapping[str, Phrase] = {"stale": nothing_new, "same_result": same_result, "same_error": failures}
"""The evidence of each kind of finding about results that bring nothing new."""
STALE_ADVICE: Mapping[int, Mapping[str, str]] = {
    1: {
        "stale": "Write down in one line what they have shown, and take the step that would show something new.",
        "same_result": "What differs between these calls made no difference: change something else.",
        "same_error": "Find the one thing that these calls have in common and that causes it, and change that.",
    },
    2: {
        "stale": "Leave this way and look in another place now.",
        "same_result": "Change something else now.",
        "same_error": "Try a different approach now.",
    },
    3: dict.fromkeys(
        ("stale", "same_result", "same_error"), "Take a step of another kind: another tool, or another source."
    ),
}
"""The next action for each rung and each kind of such a finding."""


def composed(evidence: str, advice: str, recall: Recall) -> str:
    """Return a text: the evidence, and the untried alternatives that the run itself holds, or else the advice.

    After an error they are named only if it offers them, or complains of a value.
    """
    found, last = recall.untried, recall.actions[-1] if recall.actions else None
    if not found.names or (last and last.failed and not (found.offered or _NO_SUCH.search(last.line))):
        return f"{evidence} {advice}"
    source = "the last result" if found.newest else "an earlier result"
    return f"{evidence} Named in {source} and not tried yet: {', '.join(found.names)}."
