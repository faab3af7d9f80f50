"""An advisor that asks an OpenAI-compatible endpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..exceptions import BadAnswer, ConfigError, ExtraMissing
from ..types import Advice, AdviceRequest
from ..util.secret import KEY_RULE, describe_key, is_key
from .asking import INSTRUCTIONS, advice_in, question

if TYPE_CHECKING:
    from ..ports import Advisor

ANSWER_BYTES = 262_144
"""Bytes of an endpoint's answer that are read."""
CONNECT_SECONDS = 5.0
SHOWN = 200
"""Characters of an endpoint's error that are logged."""


def chat(base_url: str, model: str, api_key: str | None = None) -> Advisor:
    """Return an advisor that asks a model by the chat completions API of an OpenAI-compatible endpoint.

    `base_url` is the part before `/chat/completions`, such as "http://localhost:8000/v1". Raises `ConfigError` for a
    wrong value, and `ExtraMissing` without httpx.
    """
    for name, given in (("base_url", base_url), ("model", model)):
        _check_text(name, given)
    if not base_url.startswith(("http://", "https://")):
        raise ConfigError("base_url", base_url, "must begin with http:// or https://")
    if api_key is not None and not is_key(api_key):
        raise ConfigError("api_key", describe_key(api_key), KEY_RULE)
    try:
        import httpx
    except ImportError as exc:
        raise ExtraMissing("an advisor over HTTP", "httpx", "http") from exc

    url = f"{base_url.rstrip('/')}/chat/completions"
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}

    async def advise(request: AdviceRequest) -> Advice:
        said = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question(request)}]
        body = {"model": model, "messages": said}
        timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)  # the session has a time for the whole
        async with (
            httpx.AsyncClient(headers=headers, timeout=timeout) as client,
            client.stream("POST", url, json=body) as response,
        ):
            raw = b""
            async for part in response.aiter_bytes():
                raw += part
                if len(raw) > ANSWER_BYTES:
                    raise BadAnswer("the advisor", len(raw), f"answered with more than {ANSWER_BYTES:,} bytes")
        if not response.is_success:
            shown = raw[:SHOWN].decode(errors="replace").replace(api_key or "\0", "[key]")
            raise BadAnswer("the advisor", shown, f"{url} answered HTTP {response.status_code}")
        return _read(raw)

    return advise


def _check_text(name: str, given: object) -> None:
    if not isinstance(given, str) or not given:
        raise ConfigError(name, given, "must be a string that is not empty")


def _read(raw: bytes) -> Advice:
    """Return the advice in an answer of the chat completions API. Raises `BadAnswer` for another answer."""
    try:
        answer = json.loads(raw)
        text = answer["choices"][0]["message"]["content"] or ""
        tokens = (answer.get("usage") or {}).get("total_tokens")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        raise BadAnswer("the advisor", raw[:80], "must be an answer of the chat completions API") from exc
    return advice_in(str(text), tokens if isinstance(tokens, int) else None)
