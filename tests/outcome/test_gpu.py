"""Qwen2 in torch, on the CPU: a tiny random network against a plain forward pass, and the backend over it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from _outcome.backend import BackendError, Message, Query
from _outcome.backends.gpu import NEEDED, GpuBackend
from _outcome.environment import tool

from reasonblocks.exceptions import ExtraMissing
from tests.outcome.tiny_qwen2 import Tiny, vocabulary, write

if TYPE_CHECKING:
    from _outcome.backends.batched import Batched, Written
    from _outcome.backends.qwen2 import Qwen2

MISSING = [name for name in NEEDED if find_spec(name) is None]
needs_torch = pytest.mark.skipif(bool(MISSING), reason=f"not installed here: {', '.join(MISSING)}")
ROWS, SLOTS, MOST = 40, 1024, 12
HELLO, WORLD = [1, 2, 3, 4, 5], [9, 8, 7]
LONG = [number * 7 % 250 for number in range(600)]
TOOLS = (tool("go", "Walk.", door="its name"),)


@pytest.fixture(scope="module")
def tiny() -> Tiny:
    return Tiny(len(vocabulary()))


@pytest.fixture(scope="module")
def file(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny-qwen2.gguf"
    write(path, tiny)
    return path


def network(file: Path) -> Qwen2:
    import gguf
    import torch
    from _outcome.backends.qwen2 import Qwen2

    return Qwen2(gguf.GGUFReader(file), rows=ROWS, slots=SLOTS, device="cpu", dtype=torch.float32)


def batched(file: Path, **given: Any) -> Batched:
    from _outcome.backends.batched import Batched

    return Batched(network(file), **{"stop": [len(vocabulary()) - 1], "most": MOST, "temperature": 0.0, **given})


def written(made: Batched, prompts: dict[int, list[int]], seed: int = 5) -> dict[int, Written]:
    from _outcome.backends.batched import Asked

    return made.write({row: Asked(tokens=tokens, seed=seed) for row, tokens in prompts.items()})


def tokens(found: dict[int, Written]) -> dict[int, list[int]]:
    return {row: one.tokens for row, one in found.items()}


# --- the network


@needs_torch
def test_the_logits_are_those_of_a_plain_forward_pass(file: Path, tiny: Tiny) -> None:
    import torch

    made = network(file)
    sent = torch.tensor([HELLO, HELLO[::-1]])
    found = made.logits(made.forward(sent, torch.arange(5).expand(2, 5), torch.tensor([3, 1]), 256))
    for row, prompt in enumerate((HELLO, HELLO[::-1])):
        np.testing.assert_allclose(found[row].numpy(), tiny.logits(prompt), atol=1e-3)


@needs_torch
def test_the_likeliest_continuation_is_that_of_a_plain_forward_pass(file: Path, tiny: Tiny) -> None:
    prompts = {0: HELLO, 11: WORLD, 12: LONG}
    found = tokens(written(batched(file, stop=[]), prompts))
    assert found == {row: tiny.likeliest(prompt, found[row]) for row, prompt in prompts.items()}
    assert len({*map(tuple, found.values())}) == 3  # or the network knows nothing of its prompt


@needs_torch
def test_more_rows_than_one_pass_reads(file: Path, tiny: Tiny) -> None:
    prompts = {row: [row + 1, *HELLO[: row % 5]] for row in range(ROWS)}
    found = tokens(written(batched(file, stop=[], most=2), prompts))
    assert found == {row: tiny.likeliest(prompt, found[row]) for row, prompt in prompts.items()}


@needs_torch
def test_a_continuation_ends_before_a_stop_token(file: Path, tiny: Tiny) -> None:
    whole = tiny.greedy(HELLO, MOST)
    at = next(at for at in range(2, MOST) if whole[at] not in whole[:at])
    assert written(batched(file, stop=[whole[at]]), {0: HELLO, 1: WORLD})[0].tokens == whole[:at]


# --- the cache


@needs_torch
@pytest.mark.parametrize("stopped", [False, True])
def test_a_prompt_that_goes_on_costs_only_its_new_part(file: Path, tiny: Tiny, stopped: bool) -> None:
    whole = tiny.greedy(HELLO, MOST)
    at = next(at for at in range(2, MOST) if whole[at] not in whole[:at])
    made = batched(file, stop=[whole[at]] if stopped else [])
    first = written(made, {2: HELLO, 5: LONG})
    further = {row: [*prompt, *first[row].tokens, 77, 78] for row, prompt in ((2, HELLO), (5, LONG))}
    found = written(made, further)
    assert tokens(found) == tokens(written(batched(file, stop=[whole[at]] if stopped else []), further))
    assert found[2].cached == len(HELLO) + (at if stopped else MOST - 1)


@needs_torch
def test_a_prompt_that_differs_is_read_from_there(file: Path, tiny: Tiny) -> None:
    made = batched(file, stop=[])
    assert [one.cached for one in written(made, {0: LONG, 1: HELLO}).values()] == [0, 0]
    changed = [*LONG[:300], 1, *LONG[301:]]
    found = written(made, {0: changed, 1: HELLO, 2: WORLD})
    assert [one.cached for one in found.values()] == [300, len(HELLO) - 1, 0]
    for row, prompt in enumerate((changed, HELLO, WORLD)):
        assert found[row].tokens == tiny.likeliest(prompt, found[row].tokens)


@needs_torch
def test_a_row_is_kept_while_others_go_on(file: Path, tiny: Tiny) -> None:
    made = batched(file, stop=[])
    written(made, {0: LONG, 1: HELLO})
    written(made, {1: WORLD, 2: HELLO})
    found = written(made, {0: [*LONG, 3]})[0]
    assert (found.cached, found.tokens) == (len(LONG), tiny.likeliest([*LONG, 3], found.tokens))


@needs_torch
def test_a_prompt_without_room_for_its_reply_is_refused(file: Path) -> None:
    made = batched(file)
    assert made.longest == SLOTS - 1 - MOST
    for prompt in ([1] * SLOTS, []):
        with pytest.raises(ValueError, match=f"row 4 has {len(prompt)} tokens, not 1 to {made.longest}"):
            written(made, {4: prompt})
    assert len(written(made, {4: [1] * made.longest})[4].tokens) <= MOST


# --- sampling


@needs_torch
def test_what_is_sampled_depends_on_the_seed_and_not_on_other_rows(file: Path) -> None:
    def draw(prompts: dict[int, list[int]], seed: int) -> list[int]:
        return written(batched(file, temperature=2.0), prompts, seed)[1].tokens

    alone = draw({1: HELLO}, 5)
    assert draw({0: LONG, 1: HELLO, 30: WORLD}, 5) == alone
    assert draw({1: HELLO}, 6) != alone


@needs_torch
def test_tokens_are_drawn_with_their_probabilities() -> None:
    import torch
    from _outcome.backends.batched import sampled

    draws = 20_000
    shares = np.array([0.4, 0.3, 0.2, 0.06, 0.04])
    logits = torch.tensor(np.log(shares), dtype=torch.float32).expand(draws, 5)
    for seeds, place in (  # other seeds at a position, and the other way round
        (torch.arange(draws)[:, None], torch.full((draws, 1), 9)),
        (torch.full((draws, 1), 9), torch.arange(draws)[:, None]),
    ):
        drawn = np.bincount(sampled(logits, seeds, place, 4)[:, 0].numpy(), minlength=5) / draws
        np.testing.assert_allclose(drawn, [*shares[:4] / shares[:4].sum(), 0], atol=4 * 0.5 / draws**0.5)
        assert drawn[4] == 0


# --- the tokenizer and the backend


@needs_torch
def test_the_tokenizer_is_that_of_the_file(file: Path) -> None:
    import gguf
    from _outcome.backends.qwen2_chat import tokenizer

    made = tokenizer(gguf.GGUFReader(file))
    text = "<|im_start|>go 12\n\n  déjà go's<tool_call>"
    encoded = made.encode(text, add_special_tokens=False)
    assert encoded.tokens[:5] == ["<|im_start|>", "go", "Ġ", "1", "2"]
    assert encoded.tokens[-4:] == ["Ġgo", "'", "s", "<tool_call>"]
    assert encoded.ids[1] == vocabulary().index("go")
    assert made.decode(encoded.ids, skip_special_tokens=False) == text


def query(lane: int, *messages: Message) -> Query:
    start: list[Message] = [{"role": "system", "content": "S."}, {"role": "user", "content": "Go."}]
    return Query(messages=[*start, *messages], tools=TOOLS, lane=lane, seed=2**70 + lane)


def turn(result: str) -> tuple[Message, Message]:
    call = {"id": "c", "type": "function", "function": {"name": "go", "arguments": "{}"}}
    return (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result},
    )


@needs_torch
def test_replies_are_those_of_their_lanes_in_the_order_of_the_queries(file: Path) -> None:
    def backend() -> GpuBackend:
        return GpuBackend(file, lanes=8, slots=2048, max_tokens=9, device="cpu")

    made = backend()
    assert (made.model, made.lanes, made.complete([])) == ("tiny-qwen2", 8, [])
    replies = made.complete([query(6, *turn("left")), query(1)])
    assert replies == [backend().complete([query(6, *turn("left"))])[0], backend().complete([query(1)])[0]]
    assert replies[0].prompt > replies[1].prompt > 500
    assert [(reply.cached, reply.completion) for reply in replies] == [(0, 9), (0, 9)]
    assert replies[1].text.startswith('{"name": "')
    assert made.complete([query(1)])[0].cached == replies[1].prompt - 1


@needs_torch
def test_a_conversation_that_is_too_long_loses_its_oldest_calls(file: Path) -> None:
    heard: list[str] = []
    made = GpuBackend(file, lanes=2, slots=2048, max_tokens=9, device="cpu", say=heard.append)
    short = made.complete([query(0, *turn("right"), *turn("left"))])[0]
    for lane in (0, 1):
        assert made.complete([query(lane, *turn("x" * 2000), *turn("right"), *turn("left"))])[0].prompt == short.prompt
    assert len(heard) == 1
    with pytest.raises(BackendError, match="raise the number of slots") as raised:
        made.complete([query(1, *turn("x" * 2000))])
    assert raised.value.lane == 1


@needs_torch
def test_a_file_of_another_kind_is_an_error(tiny: Tiny, tmp_path: Path) -> None:
    write(tmp_path / "other.gguf", tiny, "llama")
    (tmp_path / "none.gguf").write_text("no model")
    for name, problem in (("other.gguf", "architecture 'llama'"), ("none.gguf", "GGUF"), ("missing.gguf", "No such")):
        with pytest.raises(BackendError, match=problem):
            GpuBackend(tmp_path / name, device="cpu")


@pytest.mark.skipif(not MISSING, reason="torch, gguf and tokenizers are installed here")
def test_without_its_libraries_the_error_names_what_to_install() -> None:
    with pytest.raises(ExtraMissing, match="pip install torch gguf tokenizers"):
        GpuBackend("a.gguf")
