"""A Qwen2 model from a GGUF file on a GPU, for experiments with hundreds of runs at a time.

    python benchmarks/outcome.py --gpu qwen2.5-coder-1.5b-instruct-q4_k_m.gguf ...

It needs `pip install torch gguf tokenizers`, a GPU that torch's CUDA knows, and the packages of this repository. On a
machine without a network these can be brought along, with the repository's packages and benchmarks on PYTHONPATH:

    export PYTHONPATH=packages/core/src:benchmarks
    cat model.part* > model.gguf  # a file that was brought in parts
    python benchmarks/outcome.py --gpu model.gguf ...

The memory, at two bytes a number, is that of the weights and of the cache: for the 1.5B model 3 GB, and 28 KiB a token,
so 30 GB for 256 lanes of 4,096 tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from reasonblocks.exceptions import ExtraMissing

from ..backend import BackendError, Query, Reply
from .shortened import without_oldest_call

__all__ = ["GpuBackend"]

NEEDED = ("torch", "gguf", "tokenizers")
SEED_MASK = 2**63 - 1
"""Seeds are signed integers of 64 bits on the GPU."""


def _say(text: str) -> None:
    print(text, file=sys.stderr)


class GpuBackend:
    """Answers one query for each lane in one batch; every reply is forced to be a call.

    `slots` is the longest conversation in tokens, with its reply of up to `max_tokens`: a longer one loses its oldest
    calls, which `say` is told once. With `device` "cpu" it computes in float32, slowly.

    Raises `ExtraMissing` without torch, gguf or tokenizers, `BackendError` without a GPU or with a file that is no
    Qwen2 model.
    """

    in_rounds = True

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        lanes: int = 256,
        slots: int = 4096,
        temperature: float = 0.6,
        top_k: int = 40,
        max_tokens: int = 150,
        device: str = "cuda",
        say: Callable[[str], None] = _say,
    ) -> None:
        if missing := [name for name in NEEDED if find_spec(name) is None]:
            raise ExtraMissing("a model on a GPU", " and ".join(missing), "", NEEDED)
        import gguf
        import torch

        from .batched import Batched
        from .qwen2 import Qwen2
        from .qwen2_chat import STOP, tokenizer

        file = Path(path)
        if device != "cpu" and not torch.cuda.is_available():
            raise BackendError(device, "torch finds no GPU", "install a driver and a torch for it, or use --gguf")
        dtype = torch.float32 if device == "cpu" else torch.bfloat16
        try:
            reader = gguf.GGUFReader(file)  # takes seconds: the vocabulary is long
            self._tokenizer = tokenizer(reader)
            network = Qwen2(reader, rows=lanes, slots=slots, device=device, dtype=dtype)
        except (OSError, ValueError) as error:
            raise BackendError(str(file), str(error), "use a GGUF file of a Qwen2 or Qwen2.5 model") from error
        stop = [number for name in STOP if (number := self._tokenizer.token_to_id(name)) is not None]
        self._batched = Batched(network, stop=stop, most=max_tokens, temperature=temperature, top_k=top_k)
        self._model, self._lanes, self._say, self._has_dropped = file.stem, lanes, say, False

    @property
    def model(self) -> str:
        return self._model

    @property
    def lanes(self) -> int:
        return self._lanes

    def complete(self, queries: Sequence[Query]) -> list[Reply]:
        """Answer the queries in one batch. Raises `BackendError` for one that no dropping of calls makes fit."""
        from .batched import Asked
        from .qwen2_chat import FORCED, call_in, prompt

        texts = [prompt(query.messages, query.tools) for query in queries]
        encoded = self._tokenizer.encode_batch(texts, add_special_tokens=False)  # in threads of its own
        prompts = [self._fitted(query, one.ids) for query, one in zip(queries, encoded)]
        asked = {
            query.lane: Asked(tokens=tokens, seed=query.seed & SEED_MASK) for query, tokens in zip(queries, prompts)
        }
        written = self._batched.write(asked) if asked else {}
        replies = []
        for query in queries:
            one = written[query.lane]
            text, call = call_in(FORCED + self._tokenizer.decode(one.tokens, skip_special_tokens=False))
            sent = len(asked[query.lane].tokens)
            replies.append(Reply(text=text, call=call, prompt=sent, completion=len(one.tokens), cached=one.cached))
        return replies

    def close(self) -> None:
        """Do nothing: the memory is freed with the object."""

    def _fitted(self, query: Query, tokens: list[int]) -> list[int]:
        """Return the prompt's tokens, without the oldest calls if there is no room for them."""
        from .qwen2_chat import prompt

        messages, longest = query.messages, self._batched.longest
        while len(tokens) > longest:
            if (fewer := without_oldest_call(messages)) is None:
                problem = f"the prompt of lane {query.lane} has {len(tokens)} tokens, more than {longest}"
                raise BackendError(self._model, problem, "raise the number of slots", query.lane)
            if not self._has_dropped:
                self._has_dropped = True
                self._say(f"{self._model}: a prompt exceeds {longest} tokens: oldest calls are dropped")
            messages = fewer
            tokens = self._tokenizer.encode(prompt(messages, query.tools), add_special_tokens=False).ids
        return tokens
