"""Our own JSON lines: `steps` is the only required key."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from reasonblocks.exceptions import RecordError
from reasonblocks.types import Step, ToolCall, ToolResult, Usage
from reasonblocks_workbench.traces import RecordedRun, read_runs
from tests.whole import in_whole
from tests.workbench.traces.conftest import Write, fault, only

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "dev"


def step(write: Write, **fields: object) -> Step:
    (completed,) = only(write("a.jsonl", {"steps": [fields]})).steps
    return completed


def test_a_flat_step_is_one_call_and_its_result(write: Write) -> None:
    assert step(
        write, thought="t", action="ls", action_input='{"path": "."}', observation="a b", is_error=False, tokens=9
    ) == Step(
        thought="t",
        tool_calls=(ToolCall(id="call-0", name="ls", arguments={"path": "."}),),
        tool_results=(ToolResult(call_id="call-0", name="ls", output="a b", is_error=False),),
    )


@pytest.mark.parametrize("given", ["make test", "[1, 2]", "{broken", '"text"', [1], 5])
def test_input_that_is_no_object_goes_under_one_key(write: Write, given: object) -> None:
    assert step(write, action="bash", action_input=given).tool_calls[0].arguments == {"input": given}


@pytest.mark.parametrize("depth", [900, 1_200])  # deep enough for Python 3.10, and for the later ones
def test_input_too_deep_to_mend_loses_no_step(write: Write, depth: int) -> None:
    given = '{"a":' * depth + r'"\ud800"' + "}" * depth
    assert step(write, action="bash", action_input=given).action == "bash"


@pytest.mark.parametrize("given", ["", None])
def test_a_call_without_input_has_no_arguments(write: Write, given: object) -> None:
    assert step(write, action="ls", action_input=given).tool_calls[0].arguments == {}


def test_input_may_be_an_object_itself(write: Write) -> None:
    assert step(write, action="ls", action_input={"path": "."}).tool_calls[0].arguments == {"path": "."}


@pytest.mark.parametrize("action", ["", None])
def test_an_empty_action_is_no_tool_call(write: Write, action: str | None) -> None:
    assert step(write, thought="done", action=action, action_input="x").tool_calls == ()


def test_an_observation_without_an_action_stays(write: Write) -> None:
    assert step(write, thought="hm", observation="the user says no").observation == "the user says no"


def test_an_empty_observation_with_a_flag_came_back(write: Write) -> None:
    assert step(write, action="touch", observation="", is_error=False).is_error is False


def test_nothing_came_back_when_neither_output_nor_flag_say_so(write: Write) -> None:
    assert step(write, action="submit", observation="", is_error=None).tool_results == ()


def test_the_error_flag_may_have_its_name_on_the_wire(write: Write) -> None:
    assert step(write, action="ls", observation="no", observation_is_error=True).is_error is True


def test_the_richer_form_goes_before_the_flat_one(write: Write) -> None:
    completed = step(
        write,
        action="flat",
        observation="flat",
        reasoning="inner",
        user_text="go on",
        tool_calls=[{"id": "1", "name": "a", "arguments": {"x": 1}}, {"id": "2", "name": "b"}],
        tool_results=[{"call_id": "2", "name": "b", "output": "two", "is_error": True, "duration_ms": 3.5}],
    )
    assert completed == Step(
        reasoning="inner",
        user_text="go on",
        tool_calls=(ToolCall(id="1", name="a", arguments={"x": 1}), ToolCall(id="2", name="b", arguments={})),
        tool_results=(ToolResult(call_id="2", name="b", output="two", is_error=True, duration_ms=3.5),),
    )


def test_an_empty_list_of_calls_goes_before_a_flat_action(write: Write) -> None:
    assert step(write, action="flat", tool_calls=[]).tool_calls == ()


def test_an_agent_that_an_action_names_is_called_by_that_name(write: Write) -> None:
    assert step(write, action="Orchestrator (-> WebSurfer)").action == "Orchestrator (-> WebSurfer)"


def test_the_header_is_kept(write: Write) -> None:
    path = write(
        "a.jsonl",
        {"run_id": "r", "source": "s", "outcome": "failure", "task": "t", "task_profile": "qa", "model": "m",
         "reward": 0.0, "task_key": "k", "oracle_stop": True, "steps": []},
    )  # fmt: skip
    assert only(path) == RecordedRun(
        run_id="r", steps=(), usages=(), file=path, line=1, source="s", outcome="failure", task="t",
        task_key="k", task_profile="qa", model="m", oracle_stop=True,
    )  # fmt: skip


def test_runs_of_the_same_text_have_the_same_task(write: Write) -> None:
    path = write("a.jsonl", *({"task": task, "steps": []} for task in ("t", "u", "t")))
    first, other, again = (item.task_key for item in read_runs(path) if isinstance(item, RecordedRun))
    assert first == again != other


def test_runs_without_a_task_are_of_different_tasks(write: Write) -> None:
    path = write("a.jsonl", {"steps": []}, {"steps": []})
    assert len({item.task_key for item in read_runs(path) if isinstance(item, RecordedRun)}) == 2


def test_a_run_without_an_id_is_named_by_file_and_line(write: Write) -> None:
    assert [item.run_id for item in read_runs(write("a.jsonl", {"steps": []}, {"steps": [], "run_id": None}))
            if isinstance(item, RecordedRun)] == ["a.jsonl:1", "a.jsonl:2"]  # fmt: skip


def test_an_id_may_be_a_number(write: Write) -> None:
    assert only(write("a.jsonl", {"run_id": 17, "steps": []})).run_id == "17"


@pytest.mark.parametrize("profile", ["other", "", None])
def test_an_unknown_profile_is_none(write: Write, profile: str | None) -> None:
    assert only(write("a.jsonl", {"task_profile": profile, "steps": []})).task_profile is None


def test_tokens_belong_to_the_call_that_made_the_step(write: Write) -> None:
    assert only(write("a.jsonl", {"steps": [{"tokens": 7}, {"tokens": None}, {}]})).usages == (
        Usage(output=7), Usage(), Usage(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"steps": None}, ("steps", "list", "None")),
        ({"steps": "three"}, ("steps", "list", "'three'")),
        ({"steps": [{}, {"thought": 12}]}, ("steps.1.thought", "string", "12")),
        ({"steps": [{"thought": 1}, 2, 3]}, ("steps.0.thought", "2 more")),
        ({"steps": [{"tool_calls": [{"id": "1"}]}]}, ("steps.0.tool_calls.0.name",)),
        ({"steps": [{"thought": ["x" * 999]}]}, ("...",)),
    ],
)
def test_a_malformed_record_says_where_and_what(write: Write, record: object, words: tuple[str, ...]) -> None:
    reason = fault(write("a.jsonl", record)).reason
    assert [word for word in words if word not in reason] == []
    assert len(reason) < 200


def test_a_record_without_steps_is_malformed_among_runs(write: Write) -> None:
    items = list(read_runs(write("a.jsonl", {"steps": []}, {"run_id": "b"}, [1], {"steps": []})))
    assert [type(item) for item in items] == [RecordedRun, RecordError, RecordError, RecordedRun]


@in_whole
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is not beside the repository")
def test_every_run_of_the_corpus_is_read() -> None:
    paths = sorted(CORPUS.iterdir())
    items = [item for path in paths for item in read_runs(str(path))]
    assert [item for item in items if isinstance(item, RecordError)] == []
    assert all(len(item.steps) == len(item.usages) > 0 for item in items if isinstance(item, RecordedRun))
    assert len(items) == sum(len(gzip.decompress(path.read_bytes()).splitlines()) for path in paths) > 4_000
