"""The Qwen2 network in torch: its weights from a GGUF file, and its forward pass over a static key/value cache.

The cache has `rows`, one for each conversation, and `slots`, one for each position of its tokens. The last slot is
scratch: tokens that only fill up a rectangle are written there, and no other token sees it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import gguf
import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["Qwen2", "Rows"]

Rows: TypeAlias = "Tensor | slice"
"""Rows of the cache: any, whose keys and values are copied for the pass, or a slice, whose are read in place."""
ARCHITECTURE = "qwen2"


class Shape(NamedTuple):
    """The sizes of the network, as the file's metadata has them."""

    layers: int
    heads: int
    kv_heads: int
    width: int
    epsilon: float
    rope_base: float

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def parts(self) -> tuple[int, int, int]:
        """The widths of queries, keys and values."""
        return self.heads * self.head_width, self.kv_heads * self.head_width, self.kv_heads * self.head_width


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The weights of a layer; those with the same input are joined, so that they take one product."""

    attention_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor
    out: Tensor
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The places of a pass: what all layers share. `mask` is [b, 1, group * n, slots]."""

    rows: Rows
    row_of: Tensor
    positions: Tensor
    slots: int
    cos: Tensor
    sin: Tensor
    mask: Tensor


class Qwen2:
    """The network with its cache of `rows` conversations of up to `slots - 1` tokens.

    Raises `ValueError` for a file of another architecture.
    """

    def __init__(self, reader: gguf.GGUFReader, *, rows: int, slots: int, device: str, dtype: torch.dtype) -> None:
        self.rows, self.slots, self.device, self.dtype = rows, slots, device, dtype
        self.shape = _shape(reader)
        self._weights(_tensors(reader, device, dtype))
        self._cos, self._sin = _rotations(self.shape, slots, device)
        size = (self.shape.layers, rows, self.shape.kv_heads, slots, self.shape.head_width)
        self._keys = torch.zeros(size, device=device, dtype=dtype)
        self._values = torch.zeros_like(self._keys)
        self._slot_numbers = torch.arange(slots, device=device)
        self._row_numbers = torch.arange(rows, device=device)

    @property
    def scratch(self) -> int:
        """The position of tokens that only fill up a rectangle."""
        return self.slots - 1

    def _weights(self, tensors: Mapping[str, Tensor]) -> None:
        def needed(name: str) -> Tensor:
            if name not in tensors:
                raise ValueError(f"the GGUF file has no tensor {name!r}")
            return tensors[name]

        def layer(number: int) -> Layer:
            at = f"blk.{number}."
            return Layer(
                attention_norm=needed(f"{at}attn_norm.weight"),
                qkv=torch.cat([needed(f"{at}attn_{part}.weight") for part in "qkv"]),
                qkv_bias=torch.cat([needed(f"{at}attn_{part}.bias") for part in "qkv"]),
                out=needed(f"{at}attn_output.weight"),
                mlp_norm=needed(f"{at}ffn_norm.weight"),
                gate_up=torch.cat([needed(f"{at}ffn_{part}.weight") for part in ("gate", "up")]),
                down=needed(f"{at}ffn_down.weight"),
            )

        self._embedding = needed("token_embd.weight")
        self._head = tensors.get("output.weight", self._embedding)  # small models have one matrix for both
        self._norm = needed("output_norm.weight")
        self._layers = [layer(number) for number in range(self.shape.layers)]

    def forward(self, tokens: Tensor, positions: Tensor, rows: Rows, slots: int) -> Tensor:
        """Write the tokens' keys and values into the cache, and return their hidden states [b, n, width].

        `tokens` and `positions` are [b, n]; a token sees the slots up to its position, of the first `slots`.
        """
        where = self._where(positions, rows, slots)
        x = F.embedding(tokens, self._embedding)
        for number, layer in enumerate(self._layers):
            x = x + self._attention(number, layer, self._normed(x, layer.attention_norm), where)
            gate, up = F.linear(self._normed(x, layer.mlp_norm), layer.gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, layer.down)
        return x

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of the next token, float32 [b, vocabulary], after hidden states [b, width]."""
        return F.linear(self._normed(hidden, self._norm), self._head).float()

    def _where(self, positions: Tensor, rows: Rows, slots: int) -> Where:
        b, n = positions.shape
        group = self.shape.heads // self.shape.kv_heads
        seen = self._slot_numbers[:slots] <= positions[:, None, :, None]  # [b, 1, n, slots]
        return Where(
            rows=rows,
            row_of=self._row_numbers[rows][:, None],
            positions=positions,
            slots=slots,
            cos=self._cos[positions][:, :, None],
            sin=self._sin[positions][:, :, None],
            mask=seen[:, :, None].expand(b, 1, group, n, slots).reshape(b, 1, group * n, slots),
        )

    def _attention(self, number: int, layer: Layer, x: Tensor, where: Where) -> Tensor:
        """Return the attention's output [b, n, width]. Heads that share keys are joined into one long query."""
        shape = self.shape
        b, n, _ = x.shape
        q, k, v = F.linear(x, layer.qkv, layer.qkv_bias).split(shape.parts, -1)
        q = _rotated(q.view(b, n, shape.heads, shape.head_width), where)
        k = _rotated(k.view(b, n, shape.kv_heads, shape.head_width), where)
        keys, values = self._keys[number], self._values[number]
        keys[where.row_of, :, where.positions] = k
        values[where.row_of, :, where.positions] = v.view(b, n, shape.kv_heads, shape.head_width)
        seen = F.scaled_dot_product_attention(
            q.transpose(1, 2).reshape(b, shape.kv_heads, -1, shape.head_width),
            keys[where.rows, :, : where.slots],
            values[where.rows, :, : where.slots],
            attn_mask=where.mask,
        )
        return F.linear(seen.reshape(b, shape.heads, n, shape.head_width).transpose(1, 2).reshape(b, n, -1), layer.out)

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return x divided by its root mean square, computed in float32 as in Qwen's own code."""
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.shape.epsilon)).to(x.dtype) * weight


def _shape(reader: gguf.GGUFReader) -> Shape:
    def value(name: str) -> float:
        field = reader.get_field(name)
        if field is None:
            raise ValueError(f"the GGUF file has no {name!r}")
        found: float = field.contents()
        return found

    architecture = reader.get_field("general.architecture")
    if architecture is None or architecture.contents() != ARCHITECTURE:
        found = None if architecture is None else architecture.contents()
        raise ValueError(f"the GGUF file is of the architecture {found!r}, and only {ARCHITECTURE!r} is implemented")
    return Shape(
        layers=int(value("qwen2.block_count")),
        heads=int(value("qwen2.attention.head_count")),
        kv_heads=int(value("qwen2.attention.head_count_kv")),
        width=int(value("qwen2.embedding_length")),
        epsilon=value("qwen2.attention.layer_norm_rms_epsilon"),
        rope_base=value("qwen2.rope.freq_base"),
    )


def _tensors(reader: gguf.GGUFReader, device: str, dtype: torch.dtype) -> dict[str, Tensor]:
    """Return the tensors by their names, dequantized: in threads, because numpy takes a minute of one core."""

    def read(stored: gguf.ReaderTensor) -> Tensor:
        values = gguf.quants.dequantize(stored.data, stored.tensor_type)
        return torch.tensor(values, dtype=torch.float32).to(device, dtype)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return dict(zip([stored.name for stored in reader.tensors], threads.map(read, reader.tensors)))


def _rotations(shape: Shape, slots: int, device: str) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of rotary positions, float32 [slots, head_width]."""
    halves = torch.arange(0, shape.head_width, 2, device=device, dtype=torch.float32) / shape.head_width
    angles = torch.outer(torch.arange(slots, device=device, dtype=torch.float32), shape.rope_base**-halves)
    both = torch.cat([angles, angles], -1)
    return both.cos(), both.sin()


def _rotated(x: Tensor, where: Where) -> Tensor:
    """Return x [b, n, heads, head_width] rotated by its positions; dimension i goes with i + head_width / 2."""
    first, second = x.float().chunk(2, -1)
    return (x.float() * where.cos + torch.cat([-second, first], -1) * where.sin).to(x.dtype)
