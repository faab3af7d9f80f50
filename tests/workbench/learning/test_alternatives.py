"""Tests whether a call can be changed as another run changed it."""

from __future__ import annotations

import pytest

from reasonblocks_workbench.learning._acts import Act, Argument
from reasonblocks_workbench.learning._alternatives import Remedy, applies


def call(*names: str) -> Act:
    arguments = tuple(Argument(name=name, form="one word", word="", value="0") for name in names)
    return Act(tool="search", call=1, result=1, error="none", empty=False, gist=(), arguments=arguments)


@pytest.mark.parametrize(
    ("change", "fits", "does_not"),
    [
        ("without `page`", call("page"), call("words")),
        ("with `page` as well", call("words"), call("page")),
        ("with `page` as digits instead of a list", call("page"), call("words")),
    ],
)
def test_what_is_changed_has_to_be_there_and_what_is_added_not(change: str, fits: Act, does_not: Act) -> None:
    remedy = Remedy(tool="search", changes=(change,), same_tool=True)
    assert (applies(remedy, fits), applies(remedy, does_not)) == (True, False)


def test_another_tool_is_called_whatever_the_call_was_given() -> None:
    assert applies(Remedy(tool="list", changes=("`page`",)), call("words"))
