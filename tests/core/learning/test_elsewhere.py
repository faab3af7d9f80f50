"""Whether the way of another run can be gone with a call."""

from __future__ import annotations

import pytest

from reasonblocks.learning._acts import Act, Given
from reasonblocks.learning._alternatives import Move, applies


def call(*names: str) -> Act:
    given = tuple(Given(name=name, form="one word", word="", value="0") for name in names)
    return Act(tool="search", call=1, result=1, error="none", empty=False, gist=(), given=given)


@pytest.mark.parametrize(
    ("change", "fits", "does_not"),
    [
        ("without `page`", call("page"), call("words")),
        ("with `page` as well", call("words"), call("page")),
        ("with `page` as digits instead of a list", call("page"), call("words")),
    ],
)
def test_what_is_changed_has_to_be_there_and_what_is_added_not(change: str, fits: Act, does_not: Act) -> None:
    move = Move(tool="search", changes=(change,), again=True)
    assert (applies(move, fits), applies(move, does_not)) == (True, False)


def test_another_tool_is_called_whatever_the_call_was_given() -> None:
    assert applies(Move(tool="list", changes=("`page`",)), call("words"))
