"""A log folds to its thread, whatever it holds; a head stays small and comes back as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonblocks_threads.codec import FOLD_VERSION, encode, head_json, head_of
from reasonblocks_threads.errors import ReadOnly, Refused
from reasonblocks_threads.log import fold, fold_all, upcast
from reasonblocks_threads.log.limits import EVIDENCE_KEPT, FACTS_BYTES, HEAD_BYTES, SAID_BYTES
from reasonblocks_threads.phases import Addition, Phase, Stage, Trigger
from reasonblocks_threads.policy import END_TO_END
from reasonblocks_threads.values import FORM, KINDS, Actor, Cause, Proposal, Report, ThreadEvent, thread_id_of
from tests.threads.pure import AGENT, CHILDREN, MARA, Walk, reached
from tests.whole import QUICK_EXAMPLES, WHOLE

EXAMPLES = 1_000 if WHOLE else 4 * QUICK_EXAMPLES
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "org_id cause policy proposals parent ancestors rule follows run from to trigger stage reason items until text "
    "proposal call stored ahead work code detail passed gates redirect_to feedback keep action parameters hash by auto "
    "execution deadline_at report what children child phase budget id"
).split()
VALUES = NESTED | st.sampled_from([*(each.value for each in (*Phase, *Stage, *Trigger)), *KINDS, "th_1"])
GARBAGE = NESTED | st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8)
REACHED = {phase: reached(phase) for phase in Phase}


def line(walk: Walk, kind: str, data: Any = None, **changes: Any) -> ThreadEvent:
    """The next event of a walk's log."""
    event = ThreadEvent(
        thread_id=walk.id, seq=walk.head.version + 1, kind=kind, actor=AGENT, at=1.0, data={} if data is None else data,
        command_id="c",
    )  # fmt: skip
    return replace(event, **changes)


@settings(max_examples=EXAMPLES, deadline=None)
@given(phase=st.sampled_from(Phase), kind=st.sampled_from(KINDS) | st.text(max_size=9), data=GARBAGE)
def test_any_line_folds_on_any_thread_and_one_that_is_not_understood_stops_it(
    phase: Phase, kind: str, data: Any
) -> None:
    before = REACHED[phase].head
    after = fold(before, line(REACHED[phase], kind, data))
    assert after.version == before.version + 1
    assert after.unreadable is None or replace(after, version=before.version, unreadable=None) == before
    if after.phase is not before.phase or kind not in KINDS:
        assert kind == "phase_changed" or after.unreadable
    json.loads(head_json(after))


@settings(max_examples=EXAMPLES, deadline=None)
@given(kind=st.sampled_from(KINDS), data=GARBAGE, seq=st.integers(0, 3), form=st.integers(-1, 3))
def test_any_first_line_folds(kind: str, data: Any, seq: int, form: int) -> None:
    after = fold(None, line(REACHED[Phase.DONE], kind, data, seq=seq, form=form))
    assert after.version == seq
    assert after.unreadable is None or after.phase is Phase.PROPOSED
    if kind != "thread_opened" or seq != 1 or form != FORM:
        assert after.unreadable is not None


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data())
def test_a_damaged_line_of_a_real_log_stops_the_thread_or_changes_one_value(data: st.DataObject) -> None:
    log = REACHED[data.draw(st.sampled_from(Phase))].log
    place = data.draw(st.integers(0, len(log) - 1))
    damaged = {**log[place].data}
    name = data.draw(st.sampled_from([*damaged, "more"]))
    damaged[name] = data.draw(GARBAGE)
    found = fold_all([*log[:place], replace(log[place], data=damaged), *log[place + 1 :]])
    assert found is not None
    assert found.version == len(log)


def test_equal_commands_give_equal_logs() -> None:
    again = reached(Phase.AWAITING_REVIEW)
    assert again.log == REACHED[Phase.AWAITING_REVIEW].log


def test_a_gap_or_another_threads_line_makes_the_thread_unreadable() -> None:
    walk = REACHED[Phase.AWAITING_INFERENCE]
    for changes in ({"seq": walk.head.version + 2}, {"seq": 1}, {"thread_id": "th_other"}):
        after = fold(walk.head, line(walk, "noted", {"text": "x"}, **changes))
        assert "does not follow" in str(after.unreadable)
        assert after.phase is walk.phase


def test_a_phase_change_that_the_table_does_not_have_makes_the_thread_unreadable() -> None:
    walk = REACHED[Phase.DONE]
    data = {"from": "done", "to": "executing", "trigger": "execute", "stage": "action", "reason": ""}
    assert fold(walk.head, line(walk, "phase_changed", data)).unreadable


@pytest.mark.parametrize(("kind", "form"), [("forked", 1), ("noted", FORM + 1)])
def test_a_newer_log_makes_the_thread_read_only(kind: str, form: int) -> None:
    walk = reached(Phase.AWAITING_CONFIRMATION)
    walk.thread = fold(walk.head, line(walk, kind, {"text": "x"}, form=form))
    assert walk.phase is Phase.AWAITING_CONFIRMATION
    later = fold(walk.head, line(walk, "noted", {"text": "x"}))
    assert later.unreadable == walk.head.unreadable
    assert head_of(head_json(later)) == later
    for trigger in (Trigger.DISMISSED_BY_USER, Addition.NOTE, Addition.LATE_REPORT):
        with pytest.raises(ReadOnly, match="upgrade"):
            walk.send(trigger, {"text": "x", "what": "x"}, by=MARA)


def test_an_older_form_is_read_through_all_upcasters() -> None:
    walk = REACHED[Phase.MONITORING]
    old = line(walk, "provided", {"words": "try"})
    upcasters = {
        ("provided", 1): lambda data: {"text": data["words"]},
        ("provided", 3): lambda data: {**data, "stage": "intent"},
    }
    read = upcast(old, upcasters, 4)
    assert (read.form, read.data) == (4, {"text": "try", "stage": "intent"})
    after = fold(walk.head, old, upcasters=upcasters, newest=4)
    assert [fact.text for fact in after.facts] == ["try"]
    assert fold(walk.head, old).unreadable is not None, "without them it cannot be read"


def test_a_failing_upcaster_makes_the_thread_unreadable() -> None:
    walk = REACHED[Phase.MONITORING]
    upcasters = {("noted", 1): lambda data: {"text": data["missing"]}}
    assert fold(walk.head, line(walk, "noted"), upcasters=upcasters, newest=2).unreadable


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", json.dumps({"fold": FOLD_VERSION + 1}), "{" * 2_000])
def test_a_head_that_is_no_head_of_this_version_is_an_error_to_fold_anew(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        head_of(text)


def test_a_head_without_an_id_is_an_error_to_fold_anew() -> None:
    head = json.loads(head_json(REACHED[Phase.PROPOSED].head))
    with pytest.raises(ValueError, match="no id"):
        head_of(json.dumps({**head, "id": ""}))


@settings(max_examples=EXAMPLES // 4, deadline=None)
@given(data=st.data())
def test_a_damaged_head_is_a_value_error_or_a_thread(data: st.DataObject) -> None:
    head = json.loads(head_json(REACHED[data.draw(st.sampled_from(Phase))].head))
    head[data.draw(st.sampled_from([*head]))] = data.draw(GARBAGE)
    try:
        found = head_of(json.dumps(head))
    except ValueError:
        return
    assert found.id


def test_ids_of_threads_follow_from_organisation_and_key_alone() -> None:
    found = {thread_id_of(org, key) for org, key in [("a", "b"), ("ab", ""), ("", "ab"), ("a", "b ")]}
    assert len(found) == 4
    assert thread_id_of("org", "k") == "th_a5b29adf4e4312dbaa5c"


WIDE = ["a", "é", "漢", "\x01", '"', "😀"]


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("children", [False, True])
def test_a_head_of_the_largest_inputs_has_at_most_32_kb(wide: str, children: bool) -> None:
    """System texts are cut; a person's are refused, so the longest that is accepted is sent."""
    walk = largest(wide, children=children)
    walk.check()
    assert len(head_json(walk.head).encode()) <= HEAD_BYTES
    assert walk.head.evidence, "the newest evidence stays"


def longest(wide: str, most: int, size: int) -> str:
    return wide * min(most, size // len(json.dumps(wide, ensure_ascii=False)[1:-1].encode()))


def largest(wide: str, *, children: bool) -> Walk:
    name = longest(wide, 200, 400) if wide != "\x01" else "n" * 200
    cause = Cause(kind=name, key=f"{name[:-1]}k", title=wide * 900, family=name, run_id=name)
    policy = replace(END_TO_END, consent_for=frozenset(f"action number {n:06}" for n in range(52)))
    ancestors = [thread_id_of("org", str(n)) for n in range(3 if not children else 2)]
    opening: dict[str, Any] = {
        "cause": encode(cause), "ancestors": ancestors, "parent": ancestors[0],
        "follows": ancestors[0], "proposals": [],
    }  # fmt: skip
    walk = Walk(key=cause.key, policy=policy, **opening)
    walk.person = Actor.person(longest(wide, 120, 240))
    walk.send(Trigger.BEGIN_INFERENCE)
    refs = [f"evidence {n}" for n in range(99)]
    for stage in (Stage.INTENT, Stage.CONTEXT):
        text = Proposal(stage=stage, body={"text": wide * 5_000}, confidence=0.1, author=wide * 300, refs=tuple(refs))
        walk.infer(text, call=None).send(Trigger.CONFIRMED, by=MARA)
    parameters = {"service": longest(wide, 9_999, 2_250)}
    action = Proposal(
        stage=Stage.ACTION, body={"action": "deploy", "parameters": parameters}, confidence=0.1, author=wide * 300,
        refs=tuple(refs),
    )  # fmt: skip
    walk.infer(action).send(Trigger.REDIRECTED, {"feedback": wide}, by=MARA)
    filled(walk, wide)
    walk.infer(action).execute().started()
    for n in range(90):
        item = {"id": f"{n}{wide * 300}", "label": wide * 300, "text": wide * 900, "blob": "b" * 200, "private": True}
        walk.send(Addition.EVIDENCE, {"items": [item]}, by=AGENT)
    for n in range(20):
        call = {"id": f"{walk.id}.{n:099}", "tokens": 2**48, "usd": 123456.123456}
        walk.send(Addition.LATE_REPORT, {"what": wide * 2_000, "detail": wide * 3_000, "call": call})
    output = {"found": longest(wide, 9_999, 980)}
    report = Report.ok(wide * 3_000, partial=True, output=output)
    if children:
        opens = [{"cause": {**CHILDREN[0]["cause"], "key": f"child {n}"}} for n in range(50)]
        walk.finish(replace(report, disposition="decomposed"), children=opens)
        for child in walk.head.children:
            data = {"child": child.id, "phase": "done_cleanup_successful"}
            walk.send(Trigger.EXECUTION_DONE, data)
    else:
        walk.finish(replace(report, succeeded=False, code=wide * 90, to=wide * 300))
    return walk


def filled(walk: Walk, wide: str) -> None:
    """Redirect with feedback until the thread has no room for a person's words."""
    for length in (2_000, 300, 40, 5, 1):
        for _ in range(200):
            walk.send(Trigger.INFERENCE_REJECTED, {"code": wide * 90, "detail": wide * 900})
            try:
                walk.send(Trigger.REDIRECTED, {"feedback": longest(wide, length, 7_900)}, by=walk.person)
            except Refused:
                walk.send(Trigger.REDIRECTED, by=MARA)
                break
        else:
            pytest.fail("200 answers were taken")


def test_persons_words_are_refused_before_the_head_overflows() -> None:
    walk = Walk()
    walk.send(Trigger.BEGIN_INFERENCE)
    filled(walk, "x")
    assert FACTS_BYTES - 120 < walk.head.facts_bytes <= FACTS_BYTES
    assert walk.head.facts_bytes == len(json.dumps([fact_dict(f) for f in walk.head.facts], separators=(",", ":"))) - 1
    walk.send(Trigger.INFERENCE_REJECTED, {"code": "x"})
    with pytest.raises(Refused, match="take the thread over"):
        walk.send(Trigger.PROVIDED, {"text": "x" * 200}, by=MARA)


def fact_dict(fact: Any) -> dict[str, str]:
    return {"id": fact.id, "by": fact.by, "text": fact.text, "stage": fact.stage.value}


def test_evidence_keeps_the_newest_and_replaces_what_comes_again() -> None:
    walk = Walk()
    items = [{"id": f"e{n}", "label": "l", "text": "t"} for n in range(EVIDENCE_KEPT + 5)]
    walk.send(Addition.EVIDENCE, {"items": items[:40]}, by=AGENT)
    walk.send(Addition.EVIDENCE, {"items": items[40:]}, by=AGENT)
    assert [each.id for each in walk.head.evidence] == [f"e{n}" for n in range(5, EVIDENCE_KEPT + 5)]
    walk.send(Addition.EVIDENCE, {"items": [{"id": "e9", "label": "l", "text": "newer"}]}, by=AGENT)
    assert [each.text for each in walk.head.evidence if each.id == "e9"] == ["newer"]
    assert walk.head.evidence[-1].id == "e9"
    for n in range(30):
        walk.send(Addition.EVIDENCE, {"items": [{"id": f"big{n}", "label": "l", "text": "漢" * 400}]}, by=AGENT)
    kept = [each.id for each in walk.head.evidence]
    assert kept == [f"big{n}" for n in range(30 - len(kept), 30)]
    walk.check()


def test_the_older_evidence_gives_way_to_the_words_of_persons() -> None:
    walk = Walk()
    walk.send(Trigger.BEGIN_INFERENCE)
    items = [{"id": f"e{n}", "label": "l", "text": "t" * 400} for n in range(30)]
    walk.send(Addition.EVIDENCE, {"items": items}, by=AGENT)
    before = len(walk.head.evidence)
    filled(walk, "x")
    assert 0 < len(walk.head.evidence) < before
    assert walk.head.facts_bytes + walk.head.evidence_bytes <= SAID_BYTES
    assert walk.head.evidence[-1].id == "e29"


def test_a_call_is_booked_once_whatever_reports_it() -> None:
    walk = reached(Phase.INFERRING_INTENT)
    call = {"id": "one", "tokens": 7, "usd": 0.5, "calls": 2}
    walk.send(Trigger.INFERENCE_FAILED, {"code": "late", "call": call})
    walk.send(Addition.LATE_REPORT, {"what": "inference", "call": call})
    assert (walk.head.spent.calls, walk.head.spent.tokens, walk.head.spent.usd) == (2, 7, 0.5)
    walk.send(Addition.LATE_REPORT, {"what": "inference", "call": {"id": "two", "tokens": 1}})
    assert (walk.head.spent.calls, walk.head.spent.tokens) == (3, 8)


def test_the_fold_of_a_long_log_is_linear() -> None:
    """Ten times the events cost about ten times the time; 20 leaves room for a busy machine."""
    walk = Walk()
    log = [*walk.log]
    for n in range(2, 3_001):
        data = {"items": [{"id": f"e{n}", "label": "a call failed", "text": "x" * 60}]}
        log.append(replace(line(walk, "evidence_added", data), seq=n))
    short, long = (min(timed(log[:size]) for _ in range(3)) for size in (300, 3_000))
    assert long < 20 * short


def timed(log: list[ThreadEvent]) -> float:
    before = process_time()
    assert fold_all(log) is not None
    return process_time() - before
