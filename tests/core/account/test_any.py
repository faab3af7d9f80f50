"""The account takes any step, stays small, and reads a long result in a bounded time."""

from __future__ import annotations

from dataclasses import asdict

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonblocks.account.observe import observe
from reasonblocks.types import Step, ToolCall, ToolResult
from reasonblocks.types.account import Account
from reasonblocks.util.json import compact

from .runs import bash

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.text(max_size=120) | st.sampled_from(
    ["é: 12", '{"exit_code": 1}', "[]", "Error: x", "running", "a=1\nb: 2\n"]
)
CALLS = st.builds(ToolCall, id=st.sampled_from(["", "a", "b"]), name=st.text(max_size=12), arguments=JSON_VALUES)
RESULTS = st.builds(
    ToolResult, call_id=st.sampled_from(["", "a", "b"]), output=TEXTS, is_error=st.sampled_from([None, True, False])
)
STEPS = st.builds(
    Step,
    thought=TEXTS,
    tool_calls=st.lists(CALLS, max_size=3).map(tuple),
    tool_results=st.lists(RESULTS, max_size=3).map(tuple),
    user_text=TEXTS,
)
quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine takes its time, also to make runs; how long a step may take is test_bounds.py's."""


@quick
@given(st.lists(STEPS, max_size=8))
def test_any_run_has_an_account(steps: list[Step]) -> None:
    account = Account()
    for index, step in enumerate(steps):
        before = account
        account = observe(step, account, index, {})
        assert account == observe(step, before, index, {}), "pure"
    assert len(account.letters) == account.steps <= len(steps)


def test_the_account_of_a_long_run_is_small() -> None:
    account = Account()
    for index in range(3_000):
        text = "\n".join(f"src/file_{index}_{line}.py" for line in range(60))
        command = f"ls src/{index}" if index % 3 else f"sed -i s/{index}/b/ a.py"
        account = observe(bash(command, text, is_error=index % 5 == 0), account, index, {})
    assert (len(account.letters), len(account.actions)) == (24, 32)
    assert len(compact(asdict(account))) < 4_500
