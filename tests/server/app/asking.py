"""The bodies of requests that several tests send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
from pydantic import RootModel

from reasonblocks.account.observe import observe
from reasonblocks.types import Account
from reasonblocks.wire import WireStep

Body = dict[str, Any]
LOOP: Body = {
    "thought": "I run the tests once more.",
    "action": "run_tests",
    "action_input": '{"path": "tests"}',
    "observation": "3 failed: test_a, test_b, test_c",
    "observation_is_error": True,
}
"""A step as clients before this version send it; repeated often enough, it is a loop."""


def evaluated(client: httpx.Client, **body: Any) -> Body:
    """Return the answer to an evaluation of one more `LOOP`, unless the body has other steps."""
    answer = client.post("/v1/monitors/evaluate", json={"steps": [LOOP], "run_id": "run-1", "injected": [], **body})
    assert answer.status_code == 200, answer.text
    found: Body = answer.json()
    return found


def stepped(client: httpx.Client, count: int, steps: Sequence[Body] = (), *, start: int = 0, **body: Any) -> list[Body]:
    """Return the answers to one evaluation after the other from step `start` on, each with the account of the run."""
    account, answers = Account(), []
    for index, step in enumerate(steps or [LOOP] * count):
        account = observe(WireStep.model_validate(step).step(), account, index, {})
        if index >= start:
            sent = RootModel[Account](account).model_dump(mode="json")
            answers.append(evaluated(client, from_step=index, steps=[step], account=sent, **body))
    return answers
