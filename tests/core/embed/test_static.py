"""The shipped embedder: what its vectors are, and that no text, thread, fork or run disturbs them."""

from __future__ import annotations

import os
import threading

import numpy
import pytest
from numpy.typing import NDArray

from reasonblocks.backends.embed import StaticEmbedder
from reasonblocks.backends.embed._static import table
from reasonblocks.ports import SummingEmbedder
from reasonblocks.util.memo import VECTORS_KEPT, WORDS_KEPT, Memo
from reasonblocks.util.text import clip, words
from tests.core.world import printed

THOUGHT = "The tests couldn't be collected: src/parser.py raises an ImportError, so I'll look at its imports first."
UNRELATED = (
    "I need to look at the file again. Let me read the function that parses the header, then I will change its test.",
    "I need to look at the order again. Let me ask the customer for the address, then I will book the flight for them.",
)
NOT_PLAIN = "The café's menu → 12 €"
ODD = ["", " \n\t", "?!... --- ***", "\x00", "\x00\x01ab", "\ud800", "a" * 1_000_000, "a b. " * 200_000, "猫" * 50_000]


def length(vector: NDArray[numpy.float32]) -> float:
    return float(numpy.linalg.norm(vector.astype(numpy.float64)))


def test_it_is_an_embedder_that_sums() -> None:
    assert isinstance(StaticEmbedder(), SummingEmbedder)


@pytest.mark.parametrize("text", [THOUGHT, NOT_PLAIN])
def test_a_vector_has_unit_length(text: str) -> None:
    assert length(StaticEmbedder().embed(text)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("text", ["", " \n\t", "\x00", "\ud800", "x" * 101])
def test_a_text_without_known_words_is_zeros(text: str) -> None:
    assert not StaticEmbedder().embed(text).any()


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_any_text_has_a_finite_vector_of_256_float32(text: str) -> None:
    vector = StaticEmbedder().embed(text)
    assert (str(vector.dtype), vector.shape, bool(numpy.isfinite(vector).all())) == ("float32", (256,), True)


def test_only_the_ends_of_a_long_text_count() -> None:
    text = "first " * 4_000 + "middle " * 9_000 + "last " * 4_000
    assert (StaticEmbedder().embed(text) == StaticEmbedder().embed(clip(text))).all()


def test_many_are_embedded_as_each() -> None:
    embedder, texts = StaticEmbedder(), [THOUGHT, "", NOT_PLAIN]
    assert embedder.embed_many(texts).tolist() == [embedder.embed(text).tolist() for text in texts]
    assert embedder.embed_many([]).shape == (0, 256)


def test_paraphrases_are_nearer_than_other_thoughts() -> None:
    same, reworded, other = StaticEmbedder().embed_many(
        ["The unit tests fail again", "Once more the test suite is failing", "I book the cheapest flight to Oslo"]
    )
    assert same @ reworded > same @ other + 0.3


def test_unrelated_thoughts_of_agents_are_not_near() -> None:
    one, other = StaticEmbedder().embed_many([UNRELATED[0], UNRELATED[1]])
    assert one @ other < 0.25


def test_what_numbers_and_marks_say_counts_for_little() -> None:
    with_ids, without = StaticEmbedder().embed_many(
        ['{"order": "4417-90", "cancelled": "false", "customer": "880-21"}', "order cancelled false customer"]
    )
    assert with_ids @ without > 0.8


def test_several_texts_are_the_sum_of_each() -> None:
    embedder, texts = StaticEmbedder(), (THOUGHT, NOT_PLAIN, THOUGHT)
    each = [embedder.embed_sum((text,), None, None) for text in texts]
    assert (embedder.embed_sum(texts, None, None) == sum(each)).all()


def test_sums_are_whole_numbers() -> None:
    total = StaticEmbedder().embed_sum(("{}()" * 4_000 + " error" * 2_000,), None, None)
    assert (total == numpy.rint(total)).all()


@pytest.mark.parametrize("text", [THOUGHT, NOT_PLAIN])
def test_given_words_change_nothing(text: str) -> None:
    embedder = StaticEmbedder()
    given = embedder.embed_sum(("before", text), words(clip(text)), Memo())
    assert (given == embedder.embed_sum(("before", text), None, None)).all()


def test_what_a_memo_holds_cannot_be_changed_by_whoever_got_a_sum() -> None:
    embedder, memo = StaticEmbedder(), Memo()
    first = embedder.embed_sum((THOUGHT,), None, memo)
    kept = first.copy()
    first += 1
    assert (embedder.embed_sum((THOUGHT,), None, memo) == kept).all()


def test_a_text_is_summed_once_in_a_run() -> None:
    embedder, memo = StaticEmbedder(), Memo()
    embedder.embed_sum((THOUGHT, "other"), None, memo)
    kept = dict(memo.vectors._kept)
    embedder.embed_sum((THOUGHT, "other"), None, memo)
    assert [memo.vectors._kept[key] is value for key, value in kept.items()] == [True, True]


def test_a_memo_keeps_no_more_than_its_sizes() -> None:
    embedder, memo = StaticEmbedder(), Memo()
    for at in range(60):
        text = " ".join(f"q{at}z{number}" for number in range(100))
        embedder.embed_sum((text,), None, memo)
    assert (len(memo.vectors), len(memo.words.of(embedder.id, dict))) == (VECTORS_KEPT, WORDS_KEPT)


def test_a_memo_changes_nothing_also_when_it_has_evicted_a_text() -> None:
    embedder, memo = StaticEmbedder(), Memo()
    wanted = embedder.embed_sum((THOUGHT,), None, None).tolist()
    first, kept = (embedder.embed_sum((THOUGHT,), None, memo).tolist() for _ in range(2))
    for at in range(VECTORS_KEPT + 1):
        embedder.embed_sum((f"text {at}",), None, memo)
    assert first == kept == embedder.embed_sum((THOUGHT,), None, memo).tolist() == wanted


def test_two_runs_share_nothing() -> None:
    embedder, one, other = StaticEmbedder(), Memo(), Memo()
    embedder.embed_sum((THOUGHT,), None, one)
    assert (len(other.vectors), len(other.words)) == (0, 0)


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        table().rows[0, 0] = 1


def test_threads_get_the_same_vector() -> None:
    wanted, found = StaticEmbedder().embed(NOT_PLAIN).tolist(), []
    threads = [threading.Thread(target=lambda: found.append(StaticEmbedder().embed(NOT_PLAIN))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.tolist() == wanted for one in found] == [True] * 8


FIRST_IN_THREADS = """
import threading
from reasonblocks.backends.embed._static import table
found, start = [], threading.Barrier(8)
def load():
    start.wait()
    found.append(table())
threads = [threading.Thread(target=load) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(set(map(id, found))), len(found))
"""


def test_the_table_is_loaded_once_by_however_many_threads() -> None:
    assert printed(FIRST_IN_THREADS) == "1 8\n"


FORKED = """
import os
from reasonblocks.backends.embed import StaticEmbedder, _static
wanted = {before}
_static._lock.acquire()  # as a thread that is loading has it
child = os.fork()
if not child:
    os._exit(0 if abs((StaticEmbedder().embed("a test fails") ** 2).sum() - 1) < 1e-6 else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.parametrize("before", ["None", "StaticEmbedder()"])
def test_a_forked_process_embeds(before: str) -> None:
    assert printed(FORKED.format(before=before)) == "0\n"
