"""Ready-made advisors: models that are asked what a stuck run should try next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .exceptions import BadAnswer, ConfigError, ExtraMissing
from .types import Advice, AdviceRequest
from .util.secret import KEY_RULE, describe_key, is_key

if TYPE_CHECKING:
    from .ports import Advisor

__all__ = ["INSTRUCTIONS", "advice_in", "ask_chat_model", "chat", "question"]

INSTRUCTIONS = (
    "You advise an agent that works on a task with tools and is stuck. Tell it in at most two sentences what to try"
    " next: a step that it has not tried, as concrete as possible. You cannot use tools. Answer NONE if you know"
    " nothing better than what it will be told anyway."
)
"""What a ready-made advisor is told to do."""
NOTHING = "NONE"
MAX_TOKENS = 200
"""Tokens of an answer, at most."""
ANSWER_BYTES = 262_144
"""Bytes of an endpoint's answer that are read."""
CONNECT_SECONDS = 5.0


def question(request: AdviceRequest) -> str:
    """Return the situation of a stuck run as one text for a model."""
    steps = "\n\n".join(request.steps)
    return (
        f"The agent's task:\n{request.task or '(not known)'}\n\nIts newest steps, the oldest first:\n\n{steps}\n\n"
        f"What it will be told:\n{request.text}\n\nWhat should it try next?"
    )


def advice_in(text: str, tokens: int | None = None) -> Advice | None:
    """Return a model's answer as advice; None if it has none to give."""
    said = text.strip()
    return None if not said or said.strip(" .\"'`*").upper() == NOTHING else Advice(text=said, tokens=tokens)


def ask_chat_model(model: Any) -> Advisor:
    """Return an advisor that asks a LangChain chat model."""

    async def advise(request: AdviceRequest) -> Advice | None:
        answer = await model.ainvoke([("system", INSTRUCTIONS), ("user", question(request))])
        usage = getattr(answer, "usage_metadata", None) or {}
        return advice_in(str(answer.text), usage.get("total_tokens"))

    return advise


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

    async def advise(request: AdviceRequest) -> Advice | None:
        said = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": question(request)}]
        body = {"model": model, "messages": said, "max_tokens": MAX_TOKENS}
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
            response.raise_for_status()
        return _read(raw)

    return advise


def _check_text(name: str, given: object) -> None:
    if not isinstance(given, str) or not given:
        raise ConfigError(name, given, "must be a string that is not empty")


def _read(raw: bytes) -> Advice | None:
    """Return the advice in an answer of the chat completions API. Raises `BadAnswer` for another answer."""
    try:
        answer = json.loads(raw)
        text = answer["choices"][0]["message"]["content"] or ""
        tokens = (answer.get("usage") or {}).get("total_tokens")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
        raise BadAnswer("the advisor", raw[:80], "must be an answer of the chat completions API") from exc
    return advice_in(str(text), tokens if isinstance(tokens, int) else None)
