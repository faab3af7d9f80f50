"""Tables hold what the rows say, for every model, and only where the rows suffice."""

from __future__ import annotations

from dataclasses import replace

from _outcome.rows import Row
from _outcome.table import Points, Table, json_lines, markdown, text
from _outcome.tables import COLUMNS, placement_of, tables

from tests.outcome.made import branches, shadow

ARM = "a@tail"
LOST, WON = {"off": [0, 0], ARM: [0, 0]}, {"off": [1, 1], ARM: [1, 1]}
HELPED, HARMED = {"off": [0, 0], ARM: [1, 0]}, {"off": [1, 1], ARM: [0, 0]}


def made(*rows: Row) -> dict[str, Table]:
    return {table.name: table for table in tables(rows, boot=200)}


def test_goals_are_means_over_the_families_with_five_points() -> None:
    house = branches("house", [HELPED] * 4 + [LOST] * 6)
    hunt = branches("hunt", [HELPED] * 6)
    (row,) = made(*house, *hunt, *branches("few", [HARMED] * 4))["goals"].rows
    success = row["success"]
    assert isinstance(success, Points)
    assert round(success.point, 9) == (0.2 + 0.5) / 2
    assert (row["families"], row["harmed"], row["points"]) == (2, 0, 20)


def test_a_family_is_harmed_if_its_whole_interval_is_below_zero() -> None:
    (row,) = made(*branches("house", [HARMED] * 6 + [WON]), *branches("hunt", [HELPED] * 6))["goals"].rows
    assert row["harmed"] == 1


def test_families_that_a_reference_policy_hardly_wins_do_not_count_as_winnable() -> None:
    hopeless = [replace(row, winnable=row.seed < 2) for row in branches("hunt", [LOST] * 5)]
    (row,) = made(*branches("house", [HELPED] * 5), *hopeless)["goals"].rows
    assert isinstance(row["winnable"], Points)
    assert isinstance(row["success"], Points)
    assert (row["winnable"].point, row["success"].point) == (0.5, 0.25)


def test_arms_are_shown_by_family_and_for_all() -> None:
    shown = made(*branches("house", [HELPED, LOST]), *branches("hunt", [WON]))["arms"].rows
    assert [(row["family"], row["points"], row["off"], row["won"]) for row in shown] == [
        ("house", 2, 0.0, 0.25),
        ("hunt", 1, 1.0, 1.0),
        ("all", 3, 1 / 3, 0.5),
    ]


def test_kinds_and_monitors_are_shown_by_the_first_text() -> None:
    other = [replace(row, kind="error", monitor="errors") for row in branches("house", [LOST], first_seed=9)]
    found = made(*branches("house", [HELPED]), *other)
    assert [(row["kind"], row["won"]) for row in found["kinds"].rows] == [("error", 0.0), ("loop", 0.5)]
    assert [row["monitor"] for row in found["monitors"].rows] == ["alternation", "errors"]


def test_a_difference_at_four_points_is_not_shown() -> None:
    found = {len(rows): made(*branches("house", rows))["kinds"].rows[0] for rows in ([HELPED] * 4, [HELPED] * 5)}
    assert [row["won"] for row in found.values()] == [0.5, 0.5]
    assert (found[4]["advantage"], found[4]["gave_up"]) == (None, None)
    assert isinstance(found[5]["advantage"], Points)


def test_a_placement_is_the_mean_of_its_arms() -> None:
    outcome = {"off": [0], "a@tail": [1], "b@tail": [0], "a@system": [0]}
    found = {row["placement"]: row for row in made(*branches("house", [outcome] * 5))["placements"].rows}
    assert {name: row["arms"] for name, row in found.items()} == {"system": "a@system", "tail": "a@tail, b@tail"}
    success = found["tail"]["success"]
    assert isinstance(success, Points)
    assert success.point == 0.5


def test_the_placement_is_in_the_name_of_the_arm() -> None:
    assert [placement_of("shipped@tail"), placement_of("steer")] == ["tail", "-"]


def test_models_are_never_mixed() -> None:
    other = [replace(row, model="large") for row in branches("house", [HARMED])]
    shown = made(*branches("house", [HELPED]), *other)["arms"].rows
    assert [(row["model"], row["won"]) for row in shown] == [("large", 0.0)] * 2 + [("small", 0.5)] * 2


def test_whole_runs_are_compared_in_pairs() -> None:
    whole = [replace(row, phase="whole") for row in branches("house", [{"off": [0], "steer": [1]}] * 5)]
    row, _ = made(*whole)["whole"].rows
    assert (row["only_arm"], row["only_off"], row["p"]) == (5, 0, 2 / 2**5)


def test_runs_in_good_order_are_those_of_tasks_without_a_point() -> None:
    whole = [
        replace(row, phase="whole", point=None)
        for row in branches("house", [{"off": [0], "steer": [1]}, {"off": [1], "steer": [1]}])
    ]
    shadows = [shadow("house", 0), shadow("house", 1, point=None, won=True)]
    (row,) = made(*whole, *shadows)["cost"].rows
    assert isinstance(row["healthy"], Points)
    assert (row["healthy_runs"], row["healthy"].point) == (1, 0.0)
    assert "goals" not in made(*whole, *shadows)


def test_recovery_and_disruption_are_shown_beyond_chance() -> None:
    """Of the two runs of `off` each turns the other over, and so does the arm's: it adds nothing."""
    (row,) = made(*branches("house", [{"off": [0, 1], ARM: [1, 0]}] * 6))["goals"].rows
    beyond = [row["r_beyond"], row["d_beyond"]]
    assert [one.point for one in beyond if isinstance(one, Points)] == [0.0, 0.0]


def test_runs_with_an_error_are_counted_and_nowhere_else() -> None:
    broken = [replace(row, error="BackendError: 503", won=True) for row in branches("house", [LOST], first_seed=5)]
    found = made(*branches("house", [LOST]), *broken)
    assert [(row["runs"], row["errors"], row["won"]) for row in found["runs"].rows] == [(2, 2, 0.0)] * 2
    assert {row["won"] for row in found["arms"].rows} == {0.0}
    assert {row["points"] for row in found["arms"].rows} == {1}


def test_without_rows_there_is_no_table() -> None:
    assert made() == {}


def test_an_arm_without_runs_of_off_at_its_points_has_no_figures() -> None:
    (row,) = made(*[row for row in branches("house", [HELPED] * 6) if row.arm == ARM])["goals"].rows
    assert (row["points"], row["success"], row["families"]) == (0, None, 0)


def test_every_figure_is_explained() -> None:
    whole = [replace(row, phase="whole") for row in branches("house", [HELPED])]
    rows = [*branches("house", [HELPED] * 5), *whole, shadow("house", 0)]
    named = {"model", "through", "arm", "arms", "family", "kind", "monitor", "placement", "phase"}
    assert {name for table in made(*rows).values() for row in table.rows for name in row} - named - {*COLUMNS} == set()


def test_a_table_is_text_markdown_and_json() -> None:
    goals = made(*branches("house", [HELPED] * 4 + [LOST] * 4))["goals"]
    assert "+25.0 [" in "\n".join(text(goals))
    assert "| small | loop | a@tail | 8 | +25.0 [" in "\n".join(markdown(goals))
    assert '"success": [0.25, ' in next(json_lines(goals))
