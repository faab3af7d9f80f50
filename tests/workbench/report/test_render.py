"""A page says what its run did: in the header, the chart, the texts and the table."""

from __future__ import annotations

import base64
import gzip
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from reasonblocks.engine.fsm import Thresholds
from reasonblocks.types import Doubt, FSMState
from reasonblocks_workbench.report import Listing, NavLink, OnePage, Tally, health_page, run_line, run_page, runs_page
from reasonblocks_workbench.report._chart import INSET, LABEL, LETTERS, MARK_ORDER, MARKS, WIDTH, chart_of
from reasonblocks_workbench.report.page import HARDEST, RunPage
from reasonblocks_workbench.report.view import GATES, LEGEND, SKIPS
from tests.workbench.report.markup import Element, parsed
from tests.workbench.report.runs import hostile, ordinary, page, step, told


def rendered(run: RunPage, **more: object) -> Element:
    return parsed(run_page(run, **more))  # type: ignore[arg-type]  # keywords of different types


def rows_of(root: Element) -> list[Element]:
    return root.find("tr", class_="row")


def test_the_header_has_the_verdict_and_the_counts() -> None:
    head = rendered(ordinary(doubts=(Doubt(monitor="claim_contradiction", text="You said done."),))).find("header")[1]
    for words in ("bugfixer", "run-1", "success, in doubt", "Fix the failing tests.", "1 of 5 monitor texts",
                  "Recovered 1 of 1 within 3 steps", "Steps 7", "Tokens 900", "Duration 1:00", "steered",
                  "You said done."):  # fmt: skip
        assert words in head.words


def test_every_call_is_a_row_with_its_state_difficulty_and_step() -> None:
    rows = rows_of(rendered(ordinary()))
    assert [row.attributes["id"] for row in rows] == [f"call-{n}" for n in range(8)]
    assert "first call" in rows[0].words
    for words in ("4", "SLOW", "0.80", "run_tests", "error 1 failed", "inject"):
        assert words in rows[4].words
    assert "Done." in rows[7].words


def test_a_row_opens_without_a_script_to_all_of_its_texts() -> None:
    root = rendered(ordinary())
    more = root.find("tr", id="more-4")[0].words
    for words in ("Completed step 3", "run_tests", "1 failed", "Read the error.", "semantic_loop (fired) 0.70",
                  "inject: a monitor's text was chosen"):  # fmt: skip
        assert words in more
    summary = rows_of(root)[4].find("details")[0].find("summary")[0]
    assert summary.attributes["aria-controls"] == "more-4"


def test_a_text_has_its_place_its_reason_and_its_effect() -> None:
    (card,) = rendered(ordinary()).find("li", class_="told-card")
    for words in ("Monitor", "before call 4", "loop: semantic_loop 0.70", "Read the error.",
                  "Recovered: after 3 steps, no monitor fired and the state was NORMAL."):  # fmt: skip
        assert words in card.words
    assert card.find("a")[0].attributes["href"] == "#call-4"


def test_a_late_recovery_names_the_step_at_which_the_trouble_ends() -> None:
    still = [step(n, state="SLOW") for n in (2, 3, 4, 5)]
    (card,) = rendered(page(step(0), told(1), *still, step(6))).find("li", class_="told-card")
    assert "Late recovery, after 5 steps: after 3 steps, no monitor fired and the state was SLOW." in card.words


def test_a_text_outside_trouble_is_not_judged() -> None:
    (card,) = rendered(page(step(0), told(1, fired=()), step(2))).find("li", class_="told-card")
    assert "Not judged: the run was not in trouble." in card.words


def test_an_observed_run_would_have_been_told() -> None:
    withheld = step(1, mode="observe", withheld_sources=["MonitorSteeringInjection"], withheld_texts=["Look."],
                    monitors_fired=("semantic_loop",))  # fmt: skip
    root = rendered(page(step(0), withheld, step(2), step(3), step(4)))
    assert "Would be told 1 of 5 monitor texts Recovered untold 1 of 1 within 3 steps" in root.words
    assert "What the agent would have been told" in root.words
    assert "Recovered, without the text" in root.words


def test_a_success_in_doubt_has_the_colour_of_doubt() -> None:
    run = page(step(0), told(1), step(2, final=True), doubts=(Doubt(monitor="claim_contradiction", text="So?"),))
    root = rendered(run)
    assert "No recovery: the run ended after 1 step as success, in doubt." in root.words
    for one in (root, listing(run)):
        (badge,) = one.find("span", class_="outcome")
        assert (badge.words, badge.attributes["class"]) == ("success, in doubt", "outcome o-doubt")
        assert one.find("span", class_="doubt") == []


def test_a_failure_in_doubt_has_both_words() -> None:
    run = ordinary(outcome="failure: E", doubts=(Doubt(monitor="claim_contradiction", text="So?"),))
    assert "failure: E ? ends in doubt" in rendered(run).words


def replayed(**info: object) -> RunPage:
    return replace(ordinary(**info), replayed=True, started=None, finished=None)


def test_a_replayed_recording_would_have_been_told() -> None:
    stop = replace(page(step(0), told(1, stop="stalled"), outcome=None), replayed=True, finished=None)
    words = rendered(stop).find("main")[0].words
    for expected in ("Would be told 1 of 5 monitor texts", "would be stopped before call 1", "outcome unknown",
                     "would be told: monitor"):  # fmt: skip
        assert expected in words
    assert "would be stopped" in rendered(stop).find("figcaption")[0].words
    root = listing(replayed(outcome=None), replayed(run_id="run-2"))
    assert "Told" not in root.find("main")[0].words
    assert [one.words for one in root.find("th")][4] == "would be told"
    assert {one.attributes["data-word"] for one in root.find("td", class_="told-cell")} == {"would be told"}
    for expected in ("1 succeeded, 1 outcome unknown", "outcome all success outcome unknown",
                     "Texts that would be told", "the agent would have been told"):  # fmt: skip
        assert expected in root.words


def test_a_list_of_both_says_which_agents_were_told() -> None:
    root = listing(ordinary(), replayed(run_id="run-2"))
    assert [one.words for one in root.find("th")][4] == "told, or would be"
    assert [one.words for one in root.find("td", class_="told-cell")] == ["1", "1 would be"]


def test_lessons_are_counted_beside_the_monitor_s_texts() -> None:
    lesson = step(2, injection_sources=("E1Injection",), intervention_texts=("Read.",))
    assert "Told 2 texts: 1 of 5 monitor texts, 1 lesson" in rendered(page(step(0), told(1), lesson)).words


@pytest.mark.parametrize(
    ("run_id", "info", "name"),
    [
        ("3f2b8c9d0e1a4b5c8d7e6f5a4b3c2d1e", {}, "Fix the failing tests."),
        ("run-3f2b8c9d-0e1a-4b5c-8d7e-6f5a4b3c2d1e", {"task": ""}, "bugfixer"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", {"task": "", "agent_name": ""}, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("django__django-11099-second-try", {}, "django__django-11099-second-try"),
    ],
)
def test_a_run_is_not_named_by_a_hash(run_id: str, info: dict[str, str], name: str) -> None:
    root = rendered(ordinary(run_id=run_id, **info))
    assert root.find("h1")[0].words == name
    assert root.find("title")[0].words == f"{name} – ReasonBlocks"
    assert run_id in root.find("header")[1].words
    assert len(root.find("div", class_="task")) == (name == run_id and "task" not in info)


def test_a_run_without_calls_says_so() -> None:
    assert "No call was recorded." in rendered(page()).words


def test_the_chart_is_an_image_with_a_title_and_a_description() -> None:
    (plot,) = rendered(ordinary()).find("svg", role="img")
    names = plot.attributes["aria-labelledby"].split()
    title, description = (next(one for one in plot.all() if one.attributes.get("id") == name) for name in names)
    assert "run-1" in title.text
    for words in ("7 steps.", "States reached: SLOW, NORMAL, INIT.", "highest difficulty is 0.80, before call 4",
                  "semantic_loop fired before call 4", "Texts before call 4"):  # fmt: skip
        assert words in description.text


def test_all_rows_of_the_chart_share_the_places_of_the_calls() -> None:
    chart = chart_of(ordinary())
    middles = [column.x + chart.column / 2 for column in chart.columns]
    assert [x for x, _ in chart.ticks] == middles
    (cell,) = chart.lanes[0].cells
    assert (cell.x + cell.width / 2, chart.bands[0].x + chart.bands[0].width / 2) == (middles[4], middles[0])
    assert (cell.x, cell.width) == pytest.approx((40 + 10 * INSET, 10 - 20 * INSET))
    assert [mark.x for mark in chart.marks] == [middles[0], middles[4]]
    points = [float(point.split(",")[0]) for line in chart.lines for point in line.split()]
    assert points == middles[1:]


@pytest.mark.parametrize("steps", [1, 18, 83, 84, 1_000, 5_000])
def test_a_chart_of_any_length_fits(steps: int) -> None:
    chart = chart_of(page(*(step(n, difficulty=n / steps, scores={"semantic_loop": 0.5}) for n in range(steps))))
    assert chart.width <= 100.2
    assert chart.narrowest <= WIDTH
    assert chart.column * chart.narrowest / 100 > (23.9 if steps <= 42 else 11.9)
    assert chart.each == -(-steps // 84)
    assert len(chart.columns) == -(-steps // chart.each)
    assert all(x <= chart.width for x, _ in chart.ticks)
    apart = [round(other - one, 1) for (one, _), (other, _) in pairwise(chart.ticks)]
    assert max(apart, default=0) - min(apart, default=0) < 0.5


@pytest.mark.parametrize("levels", [(0.2, 0.6, 0.85), (0.5, 0.55, 0.6), (0.9, 0.95, 1.0), (0.0, 0.01, 0.02)])
def test_the_names_of_the_thresholds_stand_apart(levels: tuple[float, float, float]) -> None:
    fast, slow, skip = levels
    limits = Thresholds(fast_threshold=fast, slow_threshold=slow, skip_threshold=skip, hysteresis_margin=0.0)
    lines = chart_of(replace(ordinary(), thresholds=limits)).thresholds
    assert [line.name for line in lines] == ["SKIP", "SLOW", "FAST"]
    assert all(other.label_y - one.label_y >= LABEL for one, other in pairwise(lines))
    if levels == (0.2, 0.6, 0.85):
        assert [round(line.label_y - line.y, 1) for line in lines] == [3.5, 3.5, 3.5]


def test_steps_without_an_evaluation_stand_out() -> None:
    lost = [step(n, gate_decision="unavailable") for n in (1, 2, 3)]
    root = rendered(page(step(0), *lost, step(4), step(5, skipped_reason="fault")))
    assert "4 of 5 steps were not evaluated (1 fault): nothing was judged there." in root.find("header")[1].words
    gaps = [one.attributes["x"] for one in root.find("rect", class_="gap") if "x" in one.attributes]
    assert gaps == ["10.0%", "50.0%"]
    caption = root.find("figcaption")[0].words
    assert ("not evaluated" in caption, "Monitors" in caption) == (True, False)
    assert "Not evaluated: calls 1, 2, 3, 5." in root.words
    assert "not evaluated" not in rendered(ordinary()).find("main")[0].words


def test_a_column_of_several_calls_shows_the_hardest_state_and_all_marks() -> None:
    calls = [step(n, state="SKIP" if n == 500 else "NORMAL", difficulty=0.9 if n == 500 else 0.1) for n in range(1_000)]
    chart = chart_of(page(*calls[:500], told(500, state="SKIP"), *calls[501:]))
    assert [band.state for band in chart.bands] == ["NORMAL", "SKIP", "NORMAL"]
    assert [mark.kind for mark in chart.marks] == ["monitor"]


def test_a_gap_in_the_difficulty_is_a_gap_in_its_line() -> None:
    chart = chart_of(page(step(0), step(1, difficulty=0.1), step(2), step(3, difficulty=0.3), step(4, difficulty=0.4)))
    assert [len(line.split()) for line in chart.lines] == [1, 2]


def test_every_state_and_every_mark_has_its_letter() -> None:
    assert {*LETTERS} == {*HARDEST} == {state.value for state in FSMState}
    assert len({*LETTERS.values()}) == len(LETTERS)
    assert {*MARKS} == {*MARK_ORDER} == {*LEGEND}
    assert len({*MARKS.values()}) == len(MARKS)


def test_every_gate_and_every_skipped_step_is_explained() -> None:
    from typing import get_args

    from reasonblocks.types import GateDecision, SkippedReason

    assert {*GATES} == {*get_args(GateDecision)}
    assert {*SKIPS} == {*get_args(SkippedReason)}


def test_skip_is_hatched() -> None:
    root = rendered(page(step(0), step(1, state="SKIP")))
    assert [one for one in root.find("rect") if "hatch" in one.attributes.get("fill", "")]


# --- the list


def listing(*pages: RunPage, **more: object) -> Element:
    tally = Tally()
    lines = []
    for at, one in enumerate(pages):
        tally.add(one)
        lines.append(run_line(one, f"/ui/runs/{at}"))
    return parsed(runs_page(Listing(lines=lines, tally=tally, **more)))  # type: ignore[arg-type]


def test_the_list_is_a_plain_table_of_links() -> None:
    root = listing(ordinary(), ordinary(run_id="run-2", outcome="failure: E", task=""))
    assert [one.attributes["href"] for one in root.find("table", class_="runs")[0].find("a")] == [
        "/ui/runs/0",
        "/ui/runs/1",
    ]
    first, second = root.find("table", class_="runs")[0].find("tr")[1:]
    for words in ("Fix the failing tests.", "bugfixer · run-1", "SLOW", "success"):
        assert words in first.words
    assert "run-2" in second.find("a")[0].words
    assert "1 succeeded, 1 failed" in root.words
    assert "2 texts in 2 runs" in root.words


def test_what_a_run_cost_stands_beside_its_tokens() -> None:
    paid = page(step(0, tokens=900, cost_usd=1.5), step(1, tokens=10, cost_usd=0.0125), step(2, tokens=10))
    assert "Cost $1.51" in rendered(paid).find("header")[1].words
    assert "cost $0.0125" in rendered(paid).find("tr", id="more-1")[0].words
    assert "920 $1.51" in listing(paid).find("table", class_="runs")[0].find("tr")[1].words
    assert "$" not in listing(ordinary()).find("table", class_="runs")[0].words


def test_filters_wait_for_the_script_in_a_file_and_not_on_a_server() -> None:
    assert "hidden" in listing(ordinary()).find("form", class_="filters")[0].attributes
    chosen = {"state": "SLOW", "q": "fix", "sort": "told"}
    form = listing(ordinary(), action="/ui/runs", chosen=chosen).find("form", class_="filters")[0]
    assert "hidden" not in form.attributes
    assert form.attributes["action"] == "/ui/runs"
    assert {one.attributes["value"] for one in form.find("option") if "selected" in one.attributes} == {"SLOW", "told"}
    assert form.find("input", name="q")[0].attributes["value"] == "fix"


def test_one_page_has_every_run_packed() -> None:
    book = OnePage()
    for one in (ordinary(), hostile(), ordinary(run_id="run-3")):
        book.add(one)
    root = parsed("".join(book.parts()))
    blocks = root.find("script", type="application/octet-stream")
    assert [one.attributes["id"] for one in blocks] == ["packed-0", "packed-1", "packed-2"]
    links = [one.attributes["href"] for one in root.find("table", class_="runs")[0].find("a")]
    assert links == ["#run-0", "#run-1", "#run-2"]
    view = parsed(gzip.decompress(base64.b64decode(blocks[2].text)).decode("utf-8"))
    assert view.find("h1")[0].words == "run-3"
    ids = [one.attributes["id"] for one in view.all() if "id" in one.attributes]
    assert all(one.startswith("run-2-") for one in ids)
    assert len({*ids}) == len(ids)


def test_the_ids_of_a_page_are_unique_and_its_references_lead_somewhere() -> None:
    for root in (rendered(ordinary()), listing(ordinary(), ordinary())):
        ids = [one.attributes["id"] for one in root.all() if "id" in one.attributes]
        assert len({*ids}) == len(ids)
        targets = {one.attributes["href"][1:] for one in root.find("a") if one.attributes["href"].startswith("#")}
        named = " ".join(
            one.attributes.get(name, "") for one in root.all() for name in ("aria-labelledby", "aria-controls", "for")
        )
        assert {*targets, *named.split()} <= {*ids}


def test_health_counts_over_many_runs() -> None:
    tally = Tally()
    for one in (ordinary(), ordinary(), page(step(0), step(1, skipped_reason="fault", error="E: x"))):
        tally.add(one)
    words = parsed(health_page(tally, nav=[NavLink(name="Runs", href="/ui/runs")])).words
    for expected in ("SLOW 2", "semantic_loop 2", "loop 2 of 2, 100 %", "steps that were not steered after a fault 1",
                     "calls that failed 1"):  # fmt: skip
        assert expected in words


def test_texts_that_no_agent_has_seen_are_counted_apart() -> None:
    withheld = step(1, mode="observe", withheld_sources=["MonitorSteeringInjection"], withheld_texts=["Look."],
                    monitors_fired=("semantic_loop",))  # fmt: skip
    words = listing(ordinary(), page(step(0), withheld, step(2), step(3), step(4, state="SLOW"))).words
    assert "Told 1 text Recovered 100.0 % of 1 judged" in words
    assert "Would be told 1 text Recovered untold 0.0 % of 1 judged" in words


def test_tallies_add_up() -> None:
    one, other, both = Tally(), Tally(), Tally()
    for tallies, run in (((one, both), ordinary()), ((other, both), page(step(0), told(1), outcome="failure: E"))):
        for tally in tallies:
            tally.add(run)
    assert one + other == both


def test_a_shown_time_is_utc() -> None:
    assert re.search(r"started 1970-01-01 00:16 UTC", rendered(ordinary()).words)
