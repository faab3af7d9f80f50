"""Legitimate work in which errors, or talk of errors, are a part of the work."""

# One step of a trajectory is one line, however long, so that a run reads from top to bottom.
# ruff: noqa: E501

from __future__ import annotations

from tests.core.monitors.trajectories import Fair, Shelf, bash, call, react, say

__all__ = ["FAIR"]

FAIR: Shelf[Fair] = Shelf()


@FAIR
def a_sql_agent_learns_a_schema_from_three_different_errors() -> Fair:
    return Fair(
        "Which album sold best in Canada?",
        [
            call("Albums by invoice lines.", "run_sql", "OperationalError: no such column: i.album_id", is_error=True, query="SELECT i.album_id FROM invoice_items i LIMIT 3"),
            call("Lines know tracks only, so I join those.", "run_sql", "OperationalError: ambiguous column name: track_id", is_error=True, query="SELECT track_id FROM invoice_items i JOIN tracks t ON t.track_id = i.track_id LIMIT 3"),
            call("It has to be qualified.", "run_sql", "track_id\n2\n4\n6", query="SELECT t.track_id FROM invoice_items i JOIN tracks t ON t.track_id = i.track_id LIMIT 3"),
            call("Now with the country and the sum.", "run_sql", "OperationalError: near \"FORM\": syntax error", is_error=True, query="SELECT al.title, sum(i.quantity) n FORM invoice_items i"),
            call("A typing mistake.", "run_sql", "title | n\nMinha Historia | 9", query="SELECT al.title, sum(i.quantity) n FROM invoice_items i JOIN tracks t USING (track_id) JOIN albums al USING (album_id) JOIN invoices v USING (invoice_id) WHERE v.billing_country = 'Canada' GROUP BY 1 ORDER BY n DESC LIMIT 1"),
            say("Minha Historia sold best in Canada, 9 tracks of it."),
        ],
    )  # fmt: skip


@FAIR
def a_shell_agent_compiles_until_the_errors_are_gone() -> Fair:
    missing = ["u_long", "caddr_t", "quad_t", "fixpt_t", "segsz_t"]
    steps = []
    for n, name in enumerate(missing):
        thought = "Compiling on musl." if not n else f"{missing[n - 1]} is known now; compiling again."
        steps.append(bash(thought, "make 2>&1 | grep -m1 error", f"src/net.c:{88 + 31 * n}:9: error: unknown type name '{name}'"))  # fmt: skip
        steps.append(
            bash(f"{name} is a BSD type; I add it to the header.", f"sed -i '1a typedef long {name};' src/bsd.h", "")
        )
    steps.append(bash("All five types are there.", "make 2>&1 | tail -n 1", "gcc -o netd obj/net.o obj/main.o"))
    return Fair("Make netd compile on Alpine", steps)


@FAIR
def a_shell_agent_reads_code_and_logs_that_speak_of_errors() -> Fair:
    looks = [
        ("Which error classes are there?", "cat app/errors.py", "class ParseError(Exception): ...\nclass TimeoutError(Exception): ..."),
        ("And where are they raised?", "grep -rn 'raise ' app | head -3", "app/io.py:9: raise ParseError(line)\napp/net.py:41: raise TimeoutError()"),
        ("The log of the last night.", "tail -n 3 log/app.log", "ERROR ParseError in line 12\nERROR ParseError in line 80\nINFO done"),
        ("Which input was that?", "sed -n '12p;80p' data/night.csv", "7;;err;\n9;;err;"),
        ("The column 'err' is empty there. How does the reader split?", "sed -n 1,20p app/io.py", "def rows(text):\n    for line in text: # error: none"),
        ("One more place: the tests of the reader.", "grep -n Error tests/test_io.py", "5:    with raises(ParseError):"),
    ]  # fmt: skip
    steps = [bash(*look) for look in looks]
    return Fair("Explain which errors the nightly import runs into", [*steps, say("Lines 12 and 80 have an empty column; that raises ParseError.")])  # fmt: skip


@FAIR
def a_shell_agent_opens_twelve_issues_and_gets_their_ids() -> Fair:
    names = "auth billing cart catalog checkout email export invoice ledger search session webhooks".split()
    steps = [
        bash("" if n else "One issue for each module.", f"gh issue create --title 'Document {name}' --body 'Public functions lack docs.'", f"https://github.com/acme/shop/issues/{512 + n}")
        for n, name in enumerate(names)
    ]  # fmt: skip
    check = bash("Are they all there?", "gh issue list --search Document --json number --jq length", "12")
    return Fair("Open an issue 'Document X' for each of the twelve modules", [*steps, check])


@FAIR
def a_config_agent_says_done_after_reading_the_result_back() -> Fair:
    return Fair(
        "Raise the upload limit of the staging bucket to 50 MB",
        [
            call("What is it now?", "get_config", {"upload_limit_mb": 20}, path="staging/bucket.yaml"),
            call("Raising it.", "update_config", {"ok": True}, is_error=False, path="staging/bucket.yaml", upload_limit_mb=50),
            call("Did the file take it?", "get_config", {"upload_limit_mb": 50}, path="staging/bucket.yaml"),
            say("The upload limit of the staging bucket is now 50 MB. The task is complete."),
            say("Done, as said: 50 MB. Production is as it was."),
        ],
    )  # fmt: skip


@FAIR
def a_function_agent_reads_one_file_by_offset_and_limit() -> Fair:
    steps = []
    for offset in range(0, 2400, 200):
        text = "\n".join(f"{offset + n}\tstate_{offset + n} -> state_{offset + n + 1}" for n in range(5))
        steps.append(call("" if offset % 600 else f"Reading on from line {offset}.", "read_file", text, path="fsm/table.txt", offset=offset, limit=200))  # fmt: skip
    return Fair("Which states of fsm/table.txt are never reached?", steps)


@FAIR
def a_react_agent_tries_a_door_again_with_the_key() -> Fair:
    return Fair(
        "Leave the house through the cellar",
        [
            react("The cellar door is the way out.", "open", "cellar door", "The cellar door is locked."),
            react("Locked. Is there a key?", "look", "kitchen", "You see a table, a drawer and a stove."),
            react("A drawer may have one.", "open", "drawer", "In the drawer there is a rusty key."),
            react("I take it.", "take", "rusty key", "Taken."),
            react("Now the door again.", "open", "cellar door", "The cellar door is locked. The key fits."),
            react("It has to be turned first.", "unlock", "cellar door with rusty key", "The cellar door is unlocked."),
            react("And open.", "open", "cellar door", "The cellar door opens. You are outside."),
        ],
    )
