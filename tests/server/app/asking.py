"""The bodies of requests that several tests send."""

from __future__ import annotations

from typing import Any

import httpx

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


def stepped(client: httpx.Client, steps: int, memory: Any = None, start: int = 0, **body: Any) -> list[Body]:
    """Return the answers to one evaluation after the other, each with the memory of the one before."""
    answers = []
    for index in range(start, start + steps):
        answers.append(evaluated(client, from_step=index, memory=memory, **body))
        memory = answers[-1]["memory"]
    return answers


def without(answer: Body, *fields: str) -> Body:
    return {name: value for name, value in answer.items() if name not in fields}
