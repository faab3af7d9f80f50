"""Results that differ only in times, ids and the like are the same; all other differences are news."""

from __future__ import annotations

import pytest

from .runs import bash, letters, step

FILLER = "The service answered with the usual greeting, and nothing else has happened since then. "
VOLATILE = (
    ('{"took_ms": 57, "hits": 3}', '{"took_ms": 61, "hits": 3}'),
    ("Chunk ID: a1b2c3\nok", "Chunk ID: d4e5f6\nok"),
    ("Attempt 3", "Attempt 4"),
    ("done in 0.03s", "done in 1.2s"),
    ("at 12:03:59", "at 12:04:10"),
    ("2024-05-01T12:00:00Z start", "2024-05-01T12:00:09Z start"),
    ("<obj at 0x7f3a12ff>", "<obj at 0x7f3b99aa>"),
    ("request_id: 7c9e6679-7425-40de-944b-e07fc1f90ae7", "request_id: 9b2d1c1e-0000-41de-944b-e07fc1f90ae8"),
    ("wrote /tmp/tmpab12cd/out.txt", "wrote /tmp/tmpzz99xy/out.txt"),
    ("listening on localhost:53211", "listening on localhost:49102"),
    ("pid 4211", "pid 4300"),
    ("Wall time: 0.51 seconds", "Wall time: 0.62 seconds"),
    ("elapsed=12ms", "elapsed=15ms"),
    ('{"timestamp": 1714565000, "ok": true}', '{"timestamp": 1714565009, "ok": true}'),
    ("trace_id=4bf92f3577b34da6", "trace_id=00f067aa0ba902b7"),
    ("uptime: 3 days", "uptime: 4 days"),
    ("session_id: 8841", "session_id: 8842"),
    ("took 57 ms", "took 61 ms"),
)
NEWS = (
    ("score: 0.81", "score: 0.83"),
    ("3 failed", "2 failed"),
    ("count = 12", "count = 13"),
    ("report_1.txt", "report_2.txt"),
    ("Alice", "Bob"),
    ("balance 120", "balance 90"),
    ("42", "43"),
    ("[image sha256:0f343b0931126a20]", "[image sha256:1f343b0931126a21]"),
    ("price: $19", "price: $21"),
)


@pytest.mark.parametrize(("one", "other"), VOLATILE)
def test_a_changing_token_does_not_make_a_result_new(one: str, other: str) -> None:
    assert letters(step("probe", {"x": 1}, one), step("probe", {"x": 1}, other)) == ".A"


@pytest.mark.parametrize(("one", "other"), NEWS)
def test_other_differences_are_news(one: str, other: str) -> None:
    assert letters(step("probe", {"x": 1}, one), step("probe", {"x": 1}, other)) == ".."


def test_the_order_of_keys_does_not_make_a_call_new_and_white_space_in_a_text_does() -> None:
    same = [step("probe", {"a": 1, "b": "x"}, "ok"), step("probe", {"b": "x", "a": 1}, "ok")]
    other = [step("probe", {"text": "a b"}, "ok"), step("probe", {"text": "a  b"}, "ok")]
    assert (letters(*same), letters(*other)) == (".A", "..")


def test_the_description_beside_a_command_does_not_make_a_call_new() -> None:
    calls = [{"command": "ls", "description": text} for text in ("List files", "Look at the files again")]
    assert letters(*[step("Bash", call, "a.py") for call in calls]) == ".A"


def test_the_same_result_to_other_arguments_is_dead_for_the_third_time_also_if_it_repeats_them() -> None:
    steps = [step("open_page", {"path": path}, f"{path}: {FILLER}") for path in ("/alpha", "/beta", "/gamma", "/delta")]
    assert letters(*steps) == "..DD"


def test_a_list_is_the_same_in_any_order() -> None:
    files = [f"src/module_{number}.py" for number in range(20)]
    assert letters(bash("ls src", "\n".join(files)), bash("ls src", "\n".join(reversed(files)))) == ".A"
    grown = [*files, *[f"src/new_{number}.py" for number in range(20)]]
    assert letters(bash("ls src", "\n".join(files)), bash("ls src", "\n".join(grown))) == ".."


def test_cut_results_are_the_same_if_both_ends_are() -> None:
    body = "".join(f"line of a log, number {number}\n" for number in range(400))
    assert letters(bash("cat a.log", body), bash("cat a.log", body)) == ".A"
    assert letters(bash("cat a.log", body), bash("cat a.log", body.replace("number 200", "something else"))) == ".."
