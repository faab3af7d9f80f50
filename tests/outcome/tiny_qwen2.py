"""A tiny random Qwen2 as a GGUF file, and its forward pass in numpy without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"
LAYERS, HEADS, KV_HEADS, WIDTH, MLP, BASE, EPSILON = 2, 4, 2, 32, 48, 10_000.0, 1e-6
HEAD = WIDTH // HEADS
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
MERGED = ("go", "Ġgo", "12")


class Tiny:
    """The weights, by their names in GGUF, and what the network has to compute from them."""

    def __init__(self, vocabulary: int, seed: int = 3) -> None:
        random = np.random.default_rng(seed)

        def matrix(*shape: int) -> npt.NDArray[np.float32]:
            return random.normal(0, shape[-1] ** -0.5 * 1.5, shape).astype(np.float32)

        self.weights = {
            "token_embd.weight": matrix(vocabulary, WIDTH) * 4,
            "output.weight": matrix(vocabulary, WIDTH) * 2,
            "output_norm.weight": 1 + matrix(WIDTH),
        }
        for layer in range(LAYERS):
            sizes = {"attn_q": HEADS * HEAD, "attn_k": KV_HEADS * HEAD, "attn_v": KV_HEADS * HEAD}
            for name, size in sizes.items():
                self.weights[f"blk.{layer}.{name}.weight"] = matrix(size, WIDTH)
                self.weights[f"blk.{layer}.{name}.bias"] = matrix(size)
            others = {"attn_output": (WIDTH, WIDTH), "ffn_gate": (MLP, WIDTH), "ffn_up": (MLP, WIDTH)}
            for name, shape in {**others, "ffn_down": (WIDTH, MLP)}.items():
                self.weights[f"blk.{layer}.{name}.weight"] = matrix(*shape)
            for name in ("attn_norm", "ffn_norm"):
                self.weights[f"blk.{layer}.{name}.weight"] = 1 + matrix(WIDTH)

    def logits(self, tokens: Sequence[int]) -> Floats:
        """The logits [tokens, vocabulary], everything computed anew."""
        x = self._get("token_embd.weight")[list(tokens)]
        for layer in range(LAYERS):
            x = x + self._attention(layer, normed(x, self._get(f"blk.{layer}.attn_norm.weight")))
            y = normed(x, self._get(f"blk.{layer}.ffn_norm.weight"))
            gate = y @ self._get(f"blk.{layer}.ffn_gate.weight").T
            inner = gate / (1 + np.exp(-gate)) * (y @ self._get(f"blk.{layer}.ffn_up.weight").T)
            x = x + inner @ self._get(f"blk.{layer}.ffn_down.weight").T
        found: Floats = normed(x, self._get("output_norm.weight")) @ self._get("output.weight").T
        return found

    def greedy(self, tokens: Sequence[int], most: int) -> list[int]:
        """The likeliest continuation."""
        written: list[int] = []
        for _ in range(most):
            written.append(int(self.logits([*tokens, *written])[-1].argmax()))
        return written

    def likeliest(self, tokens: Sequence[int], written: Sequence[int]) -> list[int]:
        """The likeliest token in the place of each one written: equal to these if they are the likeliest."""
        found: list[int] = self.logits([*tokens, *written])[len(tokens) - 1 : -1].argmax(1).tolist()
        return found

    def _get(self, name: str) -> Floats:
        return self.weights[name].astype(np.float64)

    def _attention(self, layer: int, x: Floats) -> Floats:
        def projected(part: str) -> Floats:
            name = f"blk.{layer}.attn_{part}"
            y: Floats = x @ self._get(f"{name}.weight").T + self._get(f"{name}.bias")
            return y.reshape(len(x), -1, HEAD)

        q, k, v = rotated(projected("q")), rotated(projected("k")), projected("v")
        heads = []
        for head in range(HEADS):
            shared = head // (HEADS // KV_HEADS)
            scores = q[:, head] @ k[:, shared].T / np.sqrt(HEAD)
            scores[np.triu_indices(len(x), 1)] = -np.inf
            shares = np.exp(scores - scores.max(1, keepdims=True))
            heads.append(shares / shares.sum(1, keepdims=True) @ v[:, shared])
        out: Floats = np.concatenate(heads, 1) @ self._get(f"blk.{layer}.attn_output.weight").T
        return out


def normed(x: Floats, weight: Floats) -> Floats:
    found: Floats = x / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON) * weight
    return found


def rotated(x: Floats) -> Floats:
    """x [tokens, heads, HEAD], each pair (i, i + HEAD / 2) turned by its position."""
    half = HEAD // 2
    angles = np.arange(len(x))[:, None] * BASE ** (-2 * np.arange(half) / HEAD)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)[:, None]
    found: Floats = np.concatenate([turned.real, turned.imag], -1)
    return found


def vocabulary() -> list[str]:
    from tokenizers.pre_tokenizers import ByteLevel

    return [*sorted(ByteLevel.alphabet()), *MERGED, *SPECIAL]


def write(path: Path, tiny: Tiny, architecture: str = "qwen2") -> None:
    """Write the GGUF file."""
    import gguf

    writer: Any = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_embedding_length(WIDTH)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_rope_freq_base(BASE)
    tokens = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in tokens])
    writer.add_token_merges(["g o", "Ġ go", "1 2"])
    for name, weight in tiny.weights.items():
        writer.add_tensor(name, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
