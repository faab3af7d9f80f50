from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.adapters import Newest


@given(st.lists(st.tuples(st.integers(0, 8), st.integers())), st.integers(1, 4))
def test_it_holds_what_was_set_last(told: list[tuple[int, int]], most: int) -> None:
    held: Newest[int, int] = Newest(most)
    stated: OrderedDict[int, int] = OrderedDict()
    for key, value in told:
        assert held.keep(key, value) == value
        stated[key] = value
        stated.move_to_end(key)
    assert list(held.items()) == list(stated.items())[-most:]


def test_threads_that_set_at_once_leave_at_most_so_many() -> None:
    held: Newest[int, int] = Newest(16)

    def sets(start: int) -> None:
        for key in range(start, start + 2_000):
            held[key] = key

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(sets, range(0, 8_000, 2_000)))
    held[-1] = -1
    assert len(held) == 16
