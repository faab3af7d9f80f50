"""The two drivers of a flow: the only sync and async twins of the step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from ..exceptions import Unavailable
from ..requests import Flow, Request

T = TypeVar("T")


def drive(flow: Flow[T], answer: Callable[[Request[Any]], Any]) -> T:
    """Run a flow to its end, answering each request in this thread."""
    resume: Callable[[], Request[Any]] = partial(next, flow)
    while True:
        try:
            request = resume()
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            given = answer(request)
        except Unavailable as exc:
            resume = partial(flow.throw, exc)
        else:
            resume = partial(flow.send, given)


async def adrive(flow: Flow[T], answer: Callable[[Request[Any]], Awaitable[Any]]) -> T:
    """The same, awaiting each answer."""
    resume: Callable[[], Request[Any]] = partial(next, flow)
    while True:
        try:
            request = resume()
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            given = await answer(request)
        except Unavailable as exc:
            resume = partial(flow.throw, exc)
        else:
            resume = partial(flow.send, given)
