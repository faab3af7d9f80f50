"""A page says what its run did: in the header, the chart, the texts and the table."""

from __future__ import annotations

import base64
import gzip
import re

import pytest

from reasonblocks.report import Listing, NavLink, NoteForm, OnePage, Tally, health_page, run_line, run_page, runs_page
from reasonblocks.report._chart import LETTERS, MARK_ORDER, MARKS, chart_of
from reasonblocks.report._page import HARDEST, RunPage
from reasonblocks.report._view import GATES, LEGEND, SKIPS
from reasonblocks.types import Doubt, FSMState
from tests.core.report.markup import Element, parsed
from tests.core.report.runs import hostile, ordinary, page, step, told


def rendered(run: RunPage, **more: object) -> Element:
    return parsed(run_page(run, **more))  # type: ignore[arg-type]  # keywords of different types


def rows_of(root: Element) -> list[Element]:
    return root.find("tr", class_="row")


def test_the_header_has_the_verdict_and_the_counts() -> None:
    head = rendered(ordinary(doubts=(Doubt(monitor="claim_contradiction", text="You said done."),))).find("header")[1]
    for words in ("bugfixer", "run-1", "success", "ends in doubt", "Fix the failing tests.", "1 of 5 monitor texts",
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
    assert chart.bands[0].x == chart.columns[0].x
    assert [cell.x for cell in chart.lanes[0].cells] == [chart.columns[4].x]
    assert [mark.x for mark in chart.marks] == [middles[0], middles[4]]
    points = [float(point.split(",")[0]) for line in chart.lines for point in line.split()]
    assert points == middles[1:]


@pytest.mark.parametrize("steps", [1, 18, 83, 84, 1_000, 5_000])
def test_a_chart_of_any_length_fits(steps: int) -> None:
    chart = chart_of(page(*(step(n, difficulty=n / steps, scores={"semantic_loop": 0.5}) for n in range(steps))))
    assert chart.width <= 1_010
    assert chart.column >= 12
    assert chart.each == -(-steps // 84)
    assert len(chart.columns) == -(-steps // chart.each)
    assert all(x <= chart.width for x, _ in chart.ticks)


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


def test_a_note_form_posts_to_its_address() -> None:
    form = NoteForm(action="/runs/run-1/notes", fields={"token": "t"})
    found = rendered(ordinary(), note_form=form).find("form", class_="note-form")[0]
    assert (found.attributes["method"], found.attributes["action"]) == ("post", "/runs/run-1/notes")
    assert [one.attributes["value"] for one in found.find("input", name="token")] == ["t"]
    assert found.find("textarea", name="text")


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


def test_a_single_run_is_a_page_of_its_own() -> None:
    book = OnePage()
    book.add(ordinary())
    html = "".join(book.parts())
    assert html == run_page(ordinary())


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
