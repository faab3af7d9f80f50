"""Every kind of secret that occurs in runs is masked, the words around it stay, and what looks alike stays whole."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.learning._mask import hidden
from tests.core.learning.secrets_in_runs import KINDS, LOOK_ALIKES, plain, shown, told


def test_the_table_is_long() -> None:
    assert len(KINDS) >= 100
    assert len(LOOK_ALIKES) >= 40
    assert all(told(marked) for marked in KINDS.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_is_masked_and_what_stands_around_it_stays(kind: str) -> None:
    assert hidden(plain(KINDS[kind])) == shown(KINDS[kind])


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_looks_alike_stays(text: str) -> None:
    assert hidden(text) == text


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_masked_once_stays_as_it_is(kind: str) -> None:
    once = hidden(plain(KINDS[kind]))
    assert hidden(once) == once
