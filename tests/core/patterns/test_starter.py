"""The starter library: what every agent may be told by default."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from time import perf_counter

import pytest

from reasonblocks.engine.gates import TIER_RULES
from reasonblocks.monitors import MONITORS
from reasonblocks.monitors.kinds import KINDS, TYPES
from reasonblocks.patterns import pattern_json, starter
from reasonblocks.patterns.starter import starter_patterns
from reasonblocks.render.guidance import FORMS, INJECTION_BYTES, render_pattern, tier_injections
from reasonblocks.types import ETrace, Pattern
from reasonblocks.util.text import words
from reasonblocks_workbench.authoring import near_duplicates, warnings

ALL = starter_patterns()
RULES = [one for one in ALL if one.tier == "e3"]
LESSONS = [one for one in ALL if one.tier == "e2"]
STANDING_BYTES = 2_500
"""What all rules may take together: some 600 tokens, read at the first call of every run."""
LOAD_SECONDS = 0.005


def every(patterns: list[Pattern]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pattern", patterns, ids=[one.id for one in patterns])


def test_there_are_lessons_and_some_standing_rules_all_of_which_a_run_is_told() -> None:
    assert len(RULES) + len(LESSONS) == len(ALL)
    assert 8 <= len(RULES) <= 15 < TIER_RULES["e3"].top_k


def test_every_kind_of_trouble_has_its_lessons() -> None:
    counted = Counter(one.failure_type for one in LESSONS)
    assert set(counted) == {row.failure_type for row in MONITORS}
    assert all(2 <= count <= 12 for count in counted.values())


def test_ids_are_unique_and_marked_as_ours_and_no_pattern_belongs_to_an_org() -> None:
    assert len({one.id for one in ALL}) == len(ALL)
    assert [one.id for one in ALL if one.org_id is not None or not re.fullmatch(r"rb(-[a-z]+)+", one.id)] == []


def test_the_rules_are_worth_their_tokens_at_every_first_call() -> None:
    (said,), notes = tier_injections("e3", [ETrace(pattern=one) for one in RULES], "")
    assert notes == ()
    assert len(said.text.encode()) < STANDING_BYTES


@every(list(ALL))
def test_there_is_nothing_to_look_at_again(pattern: Pattern) -> None:
    assert warnings(pattern) == ()


@pytest.mark.parametrize("family", FORMS)
@every(list(ALL))
def test_every_model_can_read_it(pattern: Pattern, family: str) -> None:
    text = render_pattern(pattern.tier, family, pattern.fields)
    assert text
    assert len(text.encode()) < INJECTION_BYTES


def test_every_kind_of_finding_has_a_lesson_but_an_error_which_says_more_itself() -> None:
    assert {kind for one in LESSONS for kind in one.kinds} == {*TYPES} - {"error"}


@every(LESSONS)
def test_a_lesson_is_tied_to_kinds_of_findings(pattern: Pattern) -> None:
    assert pattern.kinds or pattern.failure_type not in KINDS


@every(LESSONS)
def test_a_lesson_is_found_by_several_thoughts(pattern: Pattern) -> None:
    assert 3 <= len(pattern.exemplars) <= 6


@every(LESSONS)
def test_a_lesson_says_what_it_is_about(pattern: Pattern) -> None:
    trigger = pattern.fields["trigger_state"]
    assert isinstance(trigger, dict)
    assert trigger["trajectory_description"]


@every(LESSONS)
def test_a_lesson_is_one_sentence_on_what_and_two_on_what_to_do(pattern: Pattern) -> None:
    counted = [len(re.findall(r"[.!?](?:\s|$)", str(pattern.fields[name]))) for name in ("diagnosis", "intervention")]
    assert counted[0] == 1
    assert counted[1] <= 2


@every(LESSONS)
def test_an_exemplar_is_what_an_agent_says_in_the_first_person(pattern: Pattern) -> None:
    said = re.compile(r"\b(?:I|I'll|me|my|we)\b", re.IGNORECASE)
    assert [text for text in pattern.exemplars if not said.search(text)] == []


def test_no_two_are_found_by_the_same_thoughts_or_say_the_same() -> None:
    assert near_duplicates(ALL) == ()


def test_no_two_exemplars_share_most_of_their_words() -> None:
    texts = [(one.id, frozenset(words(text))) for one in LESSONS for text in one.exemplars]
    alike = [(a[0], b[0]) for a, b in combinations(texts, 2) if len(a[1] & b[1]) > 0.6 * min(len(a[1]), len(b[1]))]
    assert alike == []


@pytest.mark.parametrize("name", starter._FILES)
def test_a_file_holds_what_an_export_would_write(name: str) -> None:
    file = Path(starter.__file__).with_name(f"{name}.json")
    told = json.loads(file.read_text(encoding="utf-8"))
    read = {one.id: pattern_json(one) for one in ALL}
    assert [read[one["id"]] for one in told] == told


def test_every_file_is_read() -> None:
    files = Path(starter.__file__).parent.glob("*.json")
    assert sorted(path.stem for path in files) == sorted(starter._FILES)


def test_it_is_read_while_a_client_is_made_without_being_noticed() -> None:
    taken = []
    for _ in range(5):
        starter_patterns.cache_clear()
        start = perf_counter()
        starter_patterns()
        taken.append(perf_counter() - start)
    assert min(taken) < LOAD_SECONDS


def test_it_is_read_once_a_process() -> None:
    assert starter_patterns() is starter_patterns()
