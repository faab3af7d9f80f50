"""Batched sampling over the rows of a network's cache, which is kept from one round to the next."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .qwen2 import Qwen2

__all__ = ["Asked", "Batched", "Written", "sampled"]

PREFILL_ROWS = 32
PREFILL_TOKENS = 512
"""Rows and tokens a row of one pass over prompts: 16,384 tokens keep a data-centre GPU busy, and the mask small."""
SLOTS_STEP = 256
"""The slots that a pass looks at are a multiple of this: one captured step for each, and not for each length."""
FEWEST_ROWS = 8
"""Rows of the smallest captured step; the next ones have twice the rows of the last."""
LOOK_EVERY = 8
"""Steps between two looks whether all rows have ended: each look waits for the GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A prompt's tokens, and the seed of the sampling after it."""

    tokens: Sequence[int]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The tokens up to the first stop token, without it, and how many of the prompt's were in the cache."""

    tokens: list[int]
    cached: int


class Batched:
    """Continues prompts by up to `most` tokens, each in a row of its own.

    A row remembers its tokens: a prompt that begins with them costs only its new part. The sampled token depends on
    the seed, its position and its logits, and so not on the other rows. With `temperature` 0 the likeliest is taken.
    """

    def __init__(
        self, network: Qwen2, *, stop: Collection[int], most: int, temperature: float, top_k: int = 40
    ) -> None:
        self._network, self._most = network, most
        self._temperature, self._top_k = temperature, top_k
        self._stop = torch.tensor(sorted(stop), dtype=torch.long, device=network.device)
        self._stops = frozenset(stop)
        self._held: dict[int, list[int]] = {}
        self._tokens = torch.zeros(network.rows, 1, dtype=torch.long, device=network.device)
        self._positions = torch.full_like(self._tokens, network.scratch)
        self._seeds = torch.zeros_like(self._tokens)
        self._steps: dict[tuple[int, int], tuple[torch.cuda.CUDAGraph, Tensor]] = {}

    @property
    def longest(self) -> int:
        """The most tokens that a prompt may have."""
        return self._network.scratch - self._most

    def write(self, asked: Mapping[int, Asked]) -> dict[int, Written]:
        """Return the continuation of each row's prompt. Raises `ValueError` for a prompt that is too long or empty."""
        for row, one in asked.items():
            if not 0 < len(one.tokens) <= self.longest:
                raise ValueError(f"the prompt of row {row} has {len(one.tokens)} tokens, not 1 to {self.longest}")
        cached = {row: self._cached(row, one.tokens) for row, one in asked.items()}
        with torch.inference_mode():
            written = self._decode(asked, self._prefill(asked, cached))
        found = {}
        for row, tokens in written.items():
            kept = next((at for at, token in enumerate(tokens) if token in self._stops), len(tokens))
            # The cache has what was read: not the last token, nor anything from a stop token on.
            self._held[row] = [*asked[row].tokens, *tokens[: min(kept, len(tokens) - 1)]]
            found[row] = Written(tokens=tokens[:kept], cached=cached[row])
        return found

    def _cached(self, row: int, tokens: Sequence[int]) -> int:
        """Return how many of the tokens are in the row's cache; the last one is read again, for its logits."""
        held = self._held.pop(row, [])  # until the round has ended well, nothing is known of the row
        pairs = zip(held, tokens[:-1])
        return next((at for at, (old, new) in enumerate(pairs) if old != new), min(len(held), len(tokens) - 1))

    def _prefill(self, asked: Mapping[int, Asked], cached: Mapping[int, int]) -> Tensor:
        """Read the new part of the prompts, and return the hidden states of their last tokens [rows, width]."""
        network = self._network
        last = torch.zeros(network.rows, network.shape.width, device=network.device, dtype=network.dtype)
        by_length = sorted(asked, key=lambda row: len(asked[row].tokens) - cached[row])
        for at in range(0, len(by_length), PREFILL_ROWS):
            rows = by_length[at : at + PREFILL_ROWS]
            slots = self._slots(max(len(asked[row].tokens) for row in rows))
            chosen = torch.tensor(rows, device=network.device)
            longest = max(len(asked[row].tokens) - cached[row] for row in rows)
            for begin in range(0, longest, PREFILL_TOKENS):
                parts = [asked[row].tokens[cached[row] + begin :][:PREFILL_TOKENS] for row in rows]
                tokens, positions = self._rectangle(parts, [cached[row] + begin for row in rows])
                hidden = network.forward(tokens, positions, chosen, slots)
                for number, (row, part) in enumerate(zip(rows, parts)):
                    if part and cached[row] + begin + len(part) == len(asked[row].tokens):
                        last[row] = hidden[number, len(part) - 1]
        return last

    def _rectangle(self, parts: Sequence[Sequence[int]], begins: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return tokens and positions [parts, longest]; what fills up a shorter part has the scratch position."""
        width = max(map(len, parts))
        scratch = self._network.scratch
        tokens = [[*part, *[0] * (width - len(part))] for part in parts]
        positions = [
            [*range(begin, begin + len(part)), *[scratch] * (width - len(part))] for part, begin in zip(parts, begins)
        ]
        device = self._network.device
        return torch.tensor(tokens, device=device), torch.tensor(positions, device=device)

    def _decode(self, asked: Mapping[int, Asked], last: Tensor) -> dict[int, list[int]]:
        """Return each row's tokens, at least up to its first stop token."""
        count = self._row_count(max(asked))
        slots = self._slots(max(len(one.tokens) for one in asked.values()) + self._most)
        scratch = self._network.scratch
        tokens, positions, seeds = self._tokens[:count], self._positions[:count], self._seeds[:count]
        begins = [len(asked[row].tokens) if row in asked else scratch for row in range(count)]
        place = torch.tensor(begins, device=self._network.device)[:, None]
        seeds.copy_(torch.tensor([[asked[row].seed if row in asked else 0] for row in range(count)]))
        ended = place == scratch
        found = [self._next(self._network.logits(last[:count]), seeds, place)]
        for step in range(1, self._most):
            ended = ended | torch.isin(found[-1], self._stop)
            if step % LOOK_EVERY == 1 and bool(ended.all()):
                break
            tokens.copy_(found[-1])
            positions.copy_(torch.where(ended, scratch, place))
            place = place + 1
            found.append(self._next(self._step(count, slots), seeds, place))
        every = torch.cat(found, 1).tolist()
        return {row: every[row] for row in asked}

    def _next(self, logits: Tensor, seeds: Tensor, place: Tensor) -> Tensor:
        if not self._temperature:
            return logits.argmax(1, keepdim=True)
        return sampled(logits / self._temperature, seeds, place, self._top_k)

    def _step(self, count: int, slots: int) -> Tensor:
        """Return the logits after one more token in each of the first `count` rows, captured on a GPU."""
        if self._network.device == "cpu":
            return self._plain_step(count, slots)
        if (count, slots) not in self._steps:
            self._steps[count, slots] = self._captured(count, slots)
        graph, logits = self._steps[count, slots]
        graph.replay()
        return logits

    def _captured(self, count: int, slots: int) -> tuple[torch.cuda.CUDAGraph, Tensor]:
        """Capture the step. Libraries allocate on their first calls, which a capture forbids: so it runs before."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(2):
                self._plain_step(count, slots)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            logits = self._plain_step(count, slots)
        return graph, logits

    def _plain_step(self, count: int, slots: int) -> Tensor:
        hidden = self._network.forward(self._tokens[:count], self._positions[:count], slice(0, count), slots)
        return self._network.logits(hidden[:, -1])

    def _slots(self, tokens: int) -> int:
        return min(self._network.slots, -(-tokens // SLOTS_STEP) * SLOTS_STEP)

    def _row_count(self, highest: int) -> int:
        count = FEWEST_ROWS
        while count <= highest:
            count *= 2
        return min(count, self._network.rows)


def sampled(logits: Tensor, seeds: Tensor, place: Tensor, top_k: int) -> Tensor:
    """Return a token [rows, 1] drawn from the likeliest `top_k`, by adding Gumbel noise to their logits.

    `logits` are [rows, vocabulary]; the noise is a hash of the row's seed, the token and its position [rows, 1].
    """
    best, tokens = torch.topk(logits, min(top_k, logits.shape[1]))
    noise = _uniform(_hashed(_hashed(seeds) ^ (place << 32) ^ tokens))
    return tokens.gather(1, (best - torch.log(-torch.log(noise))).argmax(1, keepdim=True))


def _hashed(values: Tensor) -> Tensor:
    """Return well mixed 64-bit integers: the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    values = values + _signed(0x9E3779B97F4A7C15)
    values = (values ^ _shifted(values, 30)) * _signed(0xBF58476D1CE4E5B9)
    values = (values ^ _shifted(values, 27)) * _signed(0x94D049BB133111EB)
    return values ^ _shifted(values, 31)


def _shifted(values: Tensor, bits: int) -> Tensor:
    """Return the values shifted to the right as unsigned integers, which torch has no shift for."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _uniform(values: Tensor) -> Tensor:
    """Return float32 numbers between 0 and 1, neither included, from 23 bits: a float32 has room for no more."""
    return (_shifted(values, 41).float() + 0.5) / (1 << 23)
