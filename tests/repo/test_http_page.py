"""The examples of docs/http.md run, and its numbers are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reasonblocks.backends.http import _connections, _exchange
from reasonblocks.concurrency.breaker import FAILURES_IN_A_ROW
from reasonblocks_testing.rb_api import ScriptedRbApi
from reasonblocks_workbench.cli._doctor import VARIABLES

PAGE = (Path(__file__).parents[2] / "docs/http.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
NUMBERS = [
    f"{FAILURES_IN_A_ROW} times in a row | switches the server off for {_connections.OFF_SECONDS:g} s",
    f"refuses the key (401, 403) | switches the server off for {_exchange.REFUSED_SECONDS:g} s",
    f"more than {_connections.ANSWER_BYTES // 1_000} KB",
]


@pytest.mark.parametrize("example", EXAMPLES, ids=["events only", "evaluations"])
def test_an_example_works(example: str) -> None:
    with ScriptedRbApi() as api:
        ours = example.replace("http://127.0.0.1:8700", api.url).replace("rbk_demo_key", api.key)
        names: dict[str, object] = {}
        exec(compile(ours, "docs/http.md", "exec"), names)
        with names["rb"] as rb, rb.session() as session:  # type: ignore[attr-defined]  # as the example made it
            assert session.run.run_id
        assert {received.status for received in api.requests} <= {200}


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_that_of_the_code(number: str) -> None:
    words = {"3": "three"}
    said = " ".join(words.get(word, word) for word in number.split())
    assert said in PAGE


def test_its_variables_are_known() -> None:
    assert {*re.findall(r"REASONBLOCKS_[A-Z_]+", PAGE)} <= {*VARIABLES}
