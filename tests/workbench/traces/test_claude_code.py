"""Transcripts of Claude Code: prompts, subagents, branches, and the ends of runs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.exceptions import RecordError
from reasonblocks.types import JSON, Usage
from reasonblocks_workbench.traces import Record, RecordedRun, read_runs
from reasonblocks_workbench.traces._claude_code import ClaudeCode
from tests.workbench.traces.conftest import FIXTURES, Write, runs

Line = dict[str, Any]


def told(run: RecordedRun) -> list[tuple[str, str]]:
    """Of each step its text and its results."""
    return [(step.thought, step.observation) for step in run.steps]


# ------------------------------------------------------------ what the CLI has written


def test_a_prompt_is_a_run_and_a_subagent_one_within_it() -> None:
    first, second, inside = runs(FIXTURES / "claude_code.jsonl")
    assert [run.task for run in (first, second, inside)] == [
        "Fix the failing tests.",
        "And now the linter.",
        "Read a.py.",
    ]
    assert (first.parent_run_id, second.parent_run_id, inside.parent_run_id) == (None, None, first.run_id)
    assert len({run.run_id for run in (first, second, inside)}) == 3
    assert {run.outcome for run in (first, second, inside)} == {None}
    assert {run.model for run in (first, second, inside)} == {"scripted-model"}


def test_the_lines_of_one_answer_are_one_step_with_the_results_of_all_its_calls() -> None:
    step, delegated, last = runs(FIXTURES / "claude_code.jsonl")[0].steps
    assert (step.reasoning, step.thought) == ("Both files may matter.", "I look at both files.")
    assert [(call.id, call.name, call.arguments) for call in step.tool_calls] == [
        ("c1", "look", {"path": "a.py"}), ("c2", "look", {"path": "b.py"}),
    ]  # fmt: skip
    assert [(one.call_id, one.name, one.output, one.is_error) for one in step.tool_results] == [
        ("c1", "look", "a.py is empty", None), ("c2", "look", "FileNotFoundError: b.py", True),
    ]  # fmt: skip
    assert (delegated.action, "a.py is empty." in delegated.observation) == ("Task", True)
    assert last.thought == "The tests pass."


def test_an_answer_has_its_tokens_once_with_those_of_the_cache() -> None:
    usages = runs(FIXTURES / "claude_code.jsonl")[0].usages
    assert usages[0] == Usage(input=100, output=10, cache_read=40, cache_write=20)
    assert [usage.output for usage in usages] == [10, 20, 30]


def test_the_clis_words_for_no_output_are_no_output() -> None:
    assert runs(FIXTURES / "claude_code.jsonl")[1].steps[0].tool_results[0].output == ""


def test_a_subagents_own_file_names_the_run_that_started_it(write: Write) -> None:
    lines = (FIXTURES / "claude_code.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    alone = write("agent.jsonl", "".join(line for line in lines if '"isSidechain": true' in line))
    whole, (inside,) = runs(FIXTURES / "claude_code.jsonl"), runs(alone)
    assert (inside.run_id, inside.parent_run_id) == (whole[2].run_id, whole[0].run_id)
    assert inside.steps == whole[2].steps


def test_a_compacted_session_keeps_its_runs_and_a_command_is_none() -> None:
    assert [run.task for run in runs(FIXTURES / "claude_code_ends.jsonl")] == [
        "Fix the failing tests.", "And now the linter.", "Break.",
    ]  # fmt: skip


def test_a_run_that_ends_with_an_api_error_has_failed_without_a_step_for_it() -> None:
    *others, broken = runs(FIXTURES / "claude_code_ends.jsonl")
    assert (broken.outcome, broken.steps) == ("failure: unknown", ())
    assert {run.outcome for run in others} == {None}


def test_only_the_newest_branch_is_read() -> None:
    assert [run.task for run in runs(FIXTURES / "claude_code_branches.jsonl")] == [
        "Fix the failing tests.", "And now the types.",
    ]  # fmt: skip


# ------------------------------------------------------------ other transcripts


class Transcript:
    """Lines of one session, each after the last unless it names another parent."""

    def __init__(self, session: str = "s") -> None:
        self.lines: list[Line] = []
        self._session = session

    def add(self, kind: str, role: str, content: object, **more: Any) -> Line:
        uuid = f"{self._session}{len(self.lines)}"
        parent = self.lines[-1]["uuid"] if self.lines else None
        message = {"role": role, "content": content, **more.pop("message", {})}
        line = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": self._session, "message": message}
        self.lines.append({**line, **more})
        return self.lines[-1]

    def prompt(self, text: object = "fix it", **more: Any) -> Line:
        return self.add("user", "user", text, **more)

    def says(self, text: str, **more: Any) -> Line:
        return self.add("assistant", "assistant", [{"type": "text", "text": text}], **more)

    def calls(self, key: str, name: str = "ls", **given: Any) -> Line:
        return self.add("assistant", "assistant", [{"type": "tool_use", "id": key, "name": name, "input": given}])

    def result(self, key: str, output: str, **more: Any) -> Line:
        return self.prompt([{"type": "tool_result", "tool_use_id": key, "content": output}], **more)

    def runs(self, write: Write) -> list[RecordedRun]:
        return runs(write("a.jsonl", *self.lines))


@pytest.fixture
def chat() -> Transcript:
    return Transcript()


def test_a_run_is_named_by_its_prompt(write: Write, chat: Transcript) -> None:
    chat.prompt("one", promptId="p"), chat.says("Done.")
    chat.prompt("two"), chat.says("Done.")
    assert [(run.run_id, run.line) for run in chat.runs(write)] == [("p", 1), ("s2", 3)]


def test_ids_of_prompts_that_a_copied_session_repeats_are_numbered(write: Write, chat: Transcript) -> None:
    chat.prompt("one", promptId="p"), chat.says("Done.")
    chat.prompt("two", promptId="p"), chat.says("Done.")
    assert [run.run_id for run in chat.runs(write)] == ["p", "p.2"]


def test_the_prompt_after_an_interruption_continues_the_run(write: Write, chat: Transcript) -> None:
    chat.prompt(), chat.calls("1"), chat.result("1", "rejected")
    chat.prompt([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    chat.prompt("Go on."), chat.says("Done.")
    (run,) = chat.runs(write)
    assert (run.outcome, told(run)) == (None, [("", "rejected"), ("Done.", "")])
    assert [step.user_text for step in run.steps] == ["", "Go on."]


def test_only_the_next_prompt_continues_an_interrupted_run(write: Write, chat: Transcript) -> None:
    chat.prompt("one"), chat.says("Hm."), chat.prompt("[Request interrupted by user]")
    chat.prompt("<local-command-stdout>cleared</local-command-stdout>")
    chat.prompt("Go on."), chat.says("Done."), chat.prompt("two"), chat.says("Done.")
    assert [(run.task, len(run.steps)) for run in chat.runs(write)] == [("one", 2), ("two", 1)]


def test_an_interrupted_run_has_no_outcome(write: Write, chat: Transcript) -> None:
    chat.prompt(), chat.says("Hm."), chat.prompt("[Request interrupted by user]")
    assert [run.outcome for run in chat.runs(write)] == [None]


def test_the_report_of_a_background_task_continues_the_run_that_started_it(write: Write, chat: Transcript) -> None:
    (
        chat.prompt("one"),
        chat.calls("1", "Agent", prompt="look"),
        chat.result("1", "started", toolUseResult={"agentId": "a7"}),
    )
    chat.says("It looks."), chat.prompt("two"), chat.says("Done.")
    chat.prompt("<task-notification>\n<task-id>a7</task-id>\n</task-notification>"), chat.says("It has looked.")
    assert {run.task: [text for text, _ in told(run)] for run in chat.runs(write)} == {
        "one": ["", "It looks.", "It has looked."], "two": ["Done."],
    }  # fmt: skip


def test_a_side_chain_in_the_same_file_is_a_run_of_the_one_that_asked_for_it(write: Write, chat: Transcript) -> None:
    chat.prompt("one"), chat.calls("1", "Task", prompt="look")
    outer = chat.lines[-1]["uuid"]
    chat.prompt("look", isSidechain=True, parentUuid=None), chat.says("It is empty.", isSidechain=True)
    chat.result("1", "It is empty.", parentUuid=outer), chat.says("Done.")
    main, inside = chat.runs(write)
    assert (main.run_id, inside.run_id, inside.parent_run_id) == ("s0", "s2", "s0")
    assert (told(main), told(inside)) == ([("", "It is empty."), ("Done.", "")], [("It is empty.", "")])


def test_a_subagents_run_is_where_it_began_among_the_runs(write: Write, chat: Transcript) -> None:
    chat.prompt("one"), chat.calls("1", "Task", prompt="look")
    outer = chat.lines[-1]["uuid"]
    chat.prompt("look", isSidechain=True, parentUuid=None), chat.says("It is empty.", isSidechain=True)
    chat.result("1", "It is empty.", parentUuid=outer), chat.prompt("two"), chat.says("Done.")
    assert [run.task for run in chat.runs(write)] == ["one", "look", "two"]


def test_a_subagent_belongs_to_the_run_that_its_id_came_back_to(write: Write, chat: Transcript) -> None:
    chat.prompt("one"), chat.calls("1", "Task", prompt="look")
    chat.result("1", "It is empty.", toolUseResult={"agentId": "a7"}), chat.says("Done.")
    own: dict[str, Any] = {"isSidechain": True, "agentId": "a7"}
    chat.prompt("other words", parentUuid=None, **own), chat.says("It is empty.", **own)
    assert [(run.run_id, run.parent_run_id) for run in chat.runs(write)] == [("s0", None), ("a7", "s0")]


def test_a_subagent_of_the_prompt_that_continued_a_run_belongs_to_that_run(write: Write, chat: Transcript) -> None:
    chat.prompt("one", promptId="p"), chat.says("Hm."), chat.prompt("[Request interrupted by user]")
    chat.prompt("Go on.", promptId="q"), chat.says("Done.")
    own: dict[str, Any] = {"isSidechain": True, "agentId": "a7"}
    chat.prompt("look", parentUuid=None, promptId="q", **own), chat.says("It is empty.", **own)
    assert [(run.run_id, run.parent_run_id) for run in chat.runs(write)] == [("p", None), ("a7", "p")]


def test_the_last_line_of_an_answer_has_its_tokens(write: Write, chat: Transcript) -> None:
    chat.prompt()
    for tokens in (1, 9):
        chat.says("Done.", message={"id": "m", "usage": {"input_tokens": 5, "output_tokens": tokens}})
    assert [run.usages for run in chat.runs(write)] == [(Usage(input=5, output=9),)]


def test_a_call_beside_the_one_that_was_answered_first_is_on_the_branch(write: Write, chat: Transcript) -> None:
    chat.prompt()
    use = {"type": "tool_use", "name": "ls", "input": {}}
    first = chat.add("assistant", "assistant", [{**use, "id": "1"}], message={"id": "m"})
    answered = chat.result("1", "one")
    second = chat.add("assistant", "assistant", [{**use, "id": "2"}], message={"id": "m"}, parentUuid=first["uuid"])
    chat.result("2", "two", parentUuid=second["uuid"]), chat.says("Done.", parentUuid=answered["uuid"])
    assert [told(run) for run in chat.runs(write)] == [[("", "one\n\ntwo"), ("Done.", "")]]


def test_results_on_a_branch_that_was_left_are_not_read(write: Write, chat: Transcript) -> None:
    chat.prompt("one")
    last = chat.says("Done.")["uuid"]
    (
        chat.prompt("two"),
        chat.calls("1"),
        chat.result("1", "left"),
        chat.prompt("three", parentUuid=last),
        chat.says("Done."),
    )
    assert [(run.task, told(run)) for run in chat.runs(write)] == [
        ("one", [("Done.", "")]), ("three", [("Done.", "")]),
    ]  # fmt: skip


@pytest.mark.parametrize("mark", ["isMeta", "isCompactSummary", "isVisibleInTranscriptOnly"])
def test_what_the_cli_says_to_the_model_is_no_prompt(write: Write, chat: Transcript, mark: str) -> None:
    chat.prompt(), chat.calls("1"), chat.result("1", "ok"), chat.prompt("reminder", **{mark: True}), chat.says("Done.")
    assert [told(run) for run in chat.runs(write)] == [[("", "ok"), ("Done.", "")]]


def test_a_conversation_goes_on_behind_a_compact_boundary(write: Write, chat: Transcript) -> None:
    chat.prompt(), chat.calls("1")
    last = chat.result("1", "ok")["uuid"]
    chat.lines.append({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None,
                       "logicalParentUuid": last, "sessionId": "s"})  # fmt: skip
    chat.prompt("summary", isCompactSummary=True), chat.says("Done.")
    assert [told(run) for run in chat.runs(write)] == [[("", "ok"), ("Done.", "")]]


PRESERVED: dict[str, dict[str, object]] = {
    "the preserved segment": {"compactMetadata": {"preservedSegment": {"headUuid": "s1", "tailUuid": "s1"}}},
    "nothing": {},
    "a line that follows": {"logicalParentUuid": "s4"},
    "a line that is lost": {"logicalParentUuid": "gone"},
}


@pytest.mark.parametrize("named", PRESERVED)
def test_a_conversation_goes_on_behind_every_compact_boundary(write: Write, chat: Transcript, named: str) -> None:
    chat.prompt("one")
    chat.says("first")
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "sessionId": "s"}
    chat.lines.append({**boundary, "logicalParentUuid": None, **PRESERVED[named]})
    chat.prompt("the summary", isCompactSummary=True)
    chat.says("first, again")
    chat.prompt("two")
    chat.says("second")
    assert [run.task for run in runs(write("a.jsonl", *chat.lines))] == ["one", "two"]


@pytest.mark.parametrize("named", [{"logicalParentUuid": "s1"}, PRESERVED["the preserved segment"]])
def test_a_second_compaction_that_preserves_what_the_first_did_loses_no_step(
    write: Write, chat: Transcript, named: dict[str, object]
) -> None:
    kinds = {"type": "system", "subtype": "compact_boundary", "parentUuid": None, "logicalParentUuid": None}
    chat.prompt("one")
    chat.says("first")
    for number in ("two", "three"):
        chat.lines.append({**kinds, "uuid": f"boundary {number}", "sessionId": "s", **named})
        chat.prompt("the summary", isCompactSummary=True)
        chat.prompt(number)
        chat.says("later")
    assert [run.task for run in runs(write("a.jsonl", *chat.lines))] == ["one", "two", "three"]


def test_a_session_that_was_compacted_twice_keeps_its_steps() -> None:
    found = runs(FIXTURES / "claude_code_compacted.jsonl")
    assert [(run.task, [step.thought for step in run.steps]) for run in found] == [
        (f"Look at {name}.", [f"I look at {name}.", "Done."]) for name in ("a.py", "b.py", "c.py", "d.py", "e.py")
    ]


def test_a_command_is_the_task_as_its_user_typed_it(write: Write, chat: Transcript) -> None:
    chat.prompt("<command-message>review</command-message>\n<command-name>/review</command-name>\n"
                "<command-args>a.py now</command-args>")  # fmt: skip
    chat.prompt("Review the file.", isMeta=True), chat.says("Done.")
    assert [run.task for run in chat.runs(write)] == ["/review a.py now"]


def test_an_error_that_was_overcome_is_no_failure(write: Write, chat: Transcript) -> None:
    (
        chat.prompt(),
        chat.says("API Error: 529", isApiErrorMessage=True, message={"model": "<synthetic>"}),
        chat.says("Done."),
    )
    (run,) = chat.runs(write)
    assert (run.outcome, told(run)) == (None, [("Done.", "")])


def test_an_error_without_a_name_is_told_in_its_words(write: Write, chat: Transcript) -> None:
    chat.prompt(), chat.says("API Error: 529", isApiErrorMessage=True, message={"model": "<synthetic>"})
    assert [run.outcome for run in chat.runs(write)] == ["failure: API Error: 529"]


def test_what_the_cli_itself_answers_is_no_step(write: Write, chat: Transcript) -> None:
    chat.prompt(), chat.says("No response requested.", message={"model": "<synthetic>"}), chat.says("Done.")
    assert [told(run) for run in chat.runs(write)] == [[("Done.", "")]]


def test_a_line_that_is_lost_does_not_hide_what_was_before_it(write: Write, chat: Transcript) -> None:
    chat.prompt("one"), chat.says("First."), chat.says("Second."), chat.prompt("two"), chat.says("Third.")
    del chat.lines[2]
    assert [run.task for run in chat.runs(write)] == ["one", "two"]


def test_a_line_that_is_repeated_counts_once(write: Write, chat: Transcript) -> None:
    chat.prompt(), chat.calls("1"), chat.result("1", "ok"), chat.says("Done.")
    repeated = [line for line in chat.lines for _ in range(2)]
    assert [told(run) for run in runs(write("a.jsonl", *repeated))] == [[("", "ok"), ("Done.", "")]]


def test_sessions_in_one_file_are_kept_apart(write: Write) -> None:
    one, two = Transcript("s"), Transcript("t")
    for chat in (one, two):
        chat.prompt(), chat.says("Done.")
    mixed = [line for pair in zip(one.lines, two.lines) for line in pair]
    assert [run.run_id for run in runs(write("a.jsonl", *mixed))] == ["s0", "t0"]


@pytest.mark.parametrize(
    ("line", "words"), [({"type": "user", "message": "hi"}, "message"), ([1], "type"), ({}, "type")]
)
def test_a_malformed_line_is_reported_with_its_number_and_the_rest_is_read(
    write: Write, chat: Transcript, line: object, words: str
) -> None:
    chat.prompt(), chat.says("Done.")
    error, run = read_runs(write("a.jsonl", chat.lines[0], line, chat.lines[1]))
    assert isinstance(error, RecordError)
    assert (error.line, words in error.reason) == (2, True)
    assert isinstance(run, RecordedRun)


# ------------------------------------------------------------ any JSON

NAMES = (
    "type uuid parentUuid logicalParentUuid sessionId isSidechain isMeta agentId promptId message content role id "
    "model usage name input prompt tool_use_id toolUseResult error".split()
)
WORDS = (
    "user assistant system summary tool_use tool_result text Task a b c <synthetic> "
    "[Request_interrupted <task-notification><task-id>a</task-id>".replace("_i", " i").split(" ")
)
anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=8),
    max_leaves=24,
)
words = st.sampled_from(["a", "b", "c"]) | st.none()
lines_of_any_kind = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["user", "assistant", "system"]),
        "uuid": words, "parentUuid": words, "isSidechain": st.booleans(), "message": st.dictionaries(
            st.sampled_from(["id", "role", "content", "usage", "model"]), anything, max_size=4
        ),
    },
    optional=dict.fromkeys(("agentId", "sessionId", "promptId", "toolUseResult", "error", "isMeta"), anything),
)  # fmt: skip


@given(values=st.lists(lines_of_any_kind | anything, max_size=8))
def test_no_json_is_an_exception(values: list[JSON]) -> None:
    records = [Record(line=line, value=value) for line, value in enumerate(values, 1)]
    found = list(ClaudeCode().read("a.jsonl", records))
    named = [item.run_id for item in found if isinstance(item, RecordedRun)]
    assert len(named) == len({*named})
    assert all(item.line in range(1, len(values) + 1) for item in found)
