"""The HTTP status of a refused call is found in what providers' clients raise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reasonblocks.adapters import REFUSALS, status_of


def raised(**attributes: Any) -> Exception:
    error = RuntimeError("refused")
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def caused(by: BaseException) -> Exception:
    error = RuntimeError("wrapped")
    error.__cause__ = by
    return error


AGAIN = raised()
AGAIN.__cause__ = AGAIN


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (raised(status_code=400), 400),  # openai, anthropic, mistralai, litellm
        (raised(response=SimpleNamespace(status_code=422)), 422),  # httpx
        (raised(code=400, status="INVALID_ARGUMENT"), 400),  # google-genai
        (raised(status=400), 400),  # aiohttp
        (raised(response={"ResponseMetadata": {"HTTPStatusCode": 400}}), 400),  # botocore
        (caused(raised(status_code=400)), 400),
        (caused(caused(raised(status_code=429))), 429),
        (raised(code="invalid_request_error"), 0),
        (raised(status_code=None), 0),
        (raised(), 0),
        (AGAIN, 0),  # causes itself
    ],
)
def test_the_status_is_found(error: BaseException, status: int) -> None:
    assert status_of(error) == status


def test_a_refusal_is_of_the_form_of_a_request() -> None:
    assert frozenset({400, 422}) == REFUSALS
