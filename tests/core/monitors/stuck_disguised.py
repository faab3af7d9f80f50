"""Loops behind varying texts: edits that never apply, one error through many calls, arguments that only look new."""

# One step of a trajectory is one line, however long, so that a run reads from top to bottom.
# ruff: noqa: E501

from __future__ import annotations

from tests.core.monitors.trajectories import Shelf, Stuck, bash, call

__all__ = ["DISGUISED"]

DISGUISED: Shelf[Stuck] = Shelf()


@DISGUISED
def a_service_agent_repeats_a_call_that_differs_in_its_request_id_only() -> Stuck:
    ids = [
        "3f0c1d4e-9b7a-4c11-8a51-0d9e5b1f7c01",
        "a81e77d2-1f0b-4f0e-93aa-5c2f8e6b0d42",
        "77b0f3aa-60c4-4d39-b7c6-1e2d3c4b5a69",
        "c02d9e18-7a5f-49be-8d27-ff10ab93c7e4",
        "19d4e6f0-b2c8-47a3-9e65-d8c7b6a5f403",
        "5e6f7a8b-9c0d-4e1f-a2b3-c4d5e6f7a8b9",
    ]
    thoughts = [
        "I look the shipment up.",
        "Let me see where the parcel is.",
        "Where is the shipment?",
        "Looking the shipment up again.",
        "The shipment, please.",
        "Once more.",
    ]
    return Stuck(
        task="Where is parcel 88-1204?",
        stuck=[
            call(
                thought,
                "track",
                {"parcel": "88-1204", "events": []},
                parcel="88-1204",
                request_id=one,
                ts=1711000000 + 37 * n,
            )
            for n, (thought, one) in enumerate(zip(thoughts, ids, strict=True))
        ],
    )


@DISGUISED
def a_shell_agent_repeats_a_command_that_differs_in_its_temporary_file_only() -> Stuck:
    names = ["kX3vQ9", "b7TzLm", "Qw81pe", "Zr5yHn", "mN0cVd", "uJ2sAk"]
    thoughts = [
        "Rendering the report.",
        "Rendering again.",
        "The output should be there now.",
        "One more rendering.",
        "Trying again.",
        "Again.",
    ]
    return Stuck(
        task="Render the quarterly report as PDF",
        before=[bash("What is there?", "ls report", "data.csv\nreport.md\nstyle.css")],
        stuck=[
            bash(
                thought,
                f"pandoc report/report.md -o /tmp/tmp.{name}/out.pdf; date +%T",
                f"pdflatex not found. Please select a different --pdf-engine\n14:0{n}:{11 + 7 * n}",
            )
            for n, (thought, name) in enumerate(zip(thoughts, names, strict=True))
        ],
    )


@DISGUISED
def an_edit_agent_tries_texts_that_are_not_in_the_file() -> Stuck:
    olds = [
        "def leap(year):\n    return year % 4",
        "def leap(year):\n  return year % 4",
        "def leap(year: int):\n    return year % 4",
        "def is_leap(year):\n    return year % 4",
        "def leap( year ):\n    return not year % 4",
        "leap = lambda year: year % 4",
    ]
    thoughts = [
        "I change the function.",
        "The indentation may be two blanks.",
        "It may be annotated.",
        "Or it has another name.",
        "Perhaps blanks inside the parentheses.",
        "It could be a lambda.",
    ]
    path = "/repo/dates/rules.py"
    tries = [
        call(
            thought,
            "str_replace_editor",
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.",
            command="str_replace",
            path=path,
            old_str=old,
            new_str="def leap(year): ...",
        )
        for thought, old in zip(thoughts, olds, strict=True)
    ]
    return Stuck(
        task="Fix the leap year rule in dates/rules.py",
        before=[bash("The layout first.", "ls dates", "__init__.py\nparser.py\nrules.py")],
        stuck=tries,
    )


@DISGUISED
def a_service_agent_repeats_a_call_whose_answer_differs_in_its_clock_only() -> Stuck:
    thoughts = [
        "Is the seat map published?",
        "I look at the seat map.",
        "The seat map again.",
        "Perhaps now.",
        "Seat map, once more.",
        "Again the seat map.",
    ]
    return Stuck(
        task="Which window seats of flight LX 38 are free?",
        before=[call("The flight first.", "get_flight", {"number": "LX 38", "aircraft": "77W"}, number="LX 38")],
        stuck=[
            call(
                thought,
                "get_seat_map",
                {"seats": None, "served_at": f"2024-05-17T10:{12 + 3 * n}:0{n}Z", "trace": f"9f{n}c{7 - n}e1a"},
                number="LX 38",
                nonce=f"{n}b7e41c09d{n}f",
            )
            for n, thought in enumerate(thoughts)
        ],
    )


@DISGUISED
def a_shell_agent_applies_patches_that_do_not_apply() -> Stuck:
    lines = [41, 40, 42, 39, 43, 38]
    thoughts = [
        "I apply the change as a patch.",
        "One line further up.",
        "One line further down.",
        "The context may begin earlier.",
        "Or later.",
        "With more context.",
    ]
    return Stuck(
        task="Fix the leap year rule in dates/rules.py",
        before=[bash("The layout first.", "ls dates", "__init__.py\nparser.py\nrules.py")],
        stuck=[
            bash(
                thought,
                f"git apply <<'E'\n--- a/dates/rules.py\n+++ b/dates/rules.py\n@@ -{line},1 +{line},1 @@\n-    return year % 4 == 0\n+    return leap(year)\nE",
                f"error: patch failed: dates/rules.py:{line}\nerror: dates/rules.py: patch does not apply",
            )
            for thought, line in zip(thoughts, lines, strict=True)
        ],
    )


@DISGUISED
def a_sql_agent_runs_into_the_same_error_with_different_queries() -> Stuck:
    queries = [
        "SELECT name FROM customer_orders LIMIT 5",
        "SELECT * FROM customer_orders",
        "SELECT count(*) FROM customer_orders WHERE open",
        "SELECT o.id FROM customer_orders o",
        "SELECT id FROM customer_orders ORDER BY id",
        "SELECT 1 FROM customer_orders",
    ]
    thoughts = [
        "A look at the orders.",
        "All columns then.",
        "Just the number of open ones.",
        "With an alias.",
        "Only ids, sorted.",
        "Is it there at all?",
    ]
    return Stuck(
        task="How many orders are open?",
        stuck=[
            call(thought, "run_sql", "OperationalError: no such table: customer_orders", is_error=True, query=query)
            for thought, query in zip(thoughts, queries, strict=True)
        ],
    )


@DISGUISED
def a_shell_agent_is_denied_by_the_same_error_in_different_commands() -> Stuck:
    ways = [
        "cp build/app.conf /etc/app/app.conf",
        "install -m 644 build/app.conf /etc/app/app.conf",
        "tee /etc/app/app.conf < build/app.conf",
        "cat build/app.conf > /etc/app/app.conf",
        "mv build/app.conf /etc/app/app.conf",
        "rsync build/app.conf /etc/app/app.conf",
    ]
    thoughts = [
        "Copying the configuration into place.",
        "With install instead.",
        "tee can write it.",
        "A plain redirection.",
        "Moving it.",
        "rsync may do it.",
    ]
    return Stuck(
        task="Install the new configuration of app",
        before=[bash("Build it.", "make conf", "wrote build/app.conf")],
        stuck=[
            bash(thought, way, f"{way.split()[0]}: /etc/app/app.conf: Permission denied")
            for thought, way in zip(thoughts, ways, strict=True)
        ],
    )
