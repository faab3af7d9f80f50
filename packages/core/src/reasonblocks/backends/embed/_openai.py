"""An embedding model behind any server that speaks OpenAI's `/v1/embeddings`."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...concurrency.forks import on_fork
from ...exceptions import BadAnswer, ConfigError, ExtraMissing, Unavailable
from ...patterns import SimilarityCurves
from ...util.secret import KEY_RULE, Secret, describe_key, is_key
from ...util.text import clip, whole
from ._callable import Rows, rows
from .curves import Given, curves_for

if TYPE_CHECKING:
    import httpx

NAME = "OpenAIEmbedder"
AT_ONCE = 128
"""Texts per request. OpenAI accepts 2,048 texts and 300,000 tokens; 128 thoughts of 1,000 bytes are some 35,000."""
TIMEOUT_S = 10.0
"""Seconds per request. A step waits no longer than its own deadline."""
NOTHING = " "
"""Replaces an empty text, which OpenAI rejects."""


class OpenAIEmbedder:
    """Embeds texts through a server.

    `base_url` is the part before `/embeddings`; "/v1" is added to a URL without a path.

    `dim` is the model's dimension; without it, the server is asked once, on first use. `id` defaults to "openai:" with
    the model's name. Raises `Unavailable` if the server returns no usable answer, `ConfigError` for a URL, key or
    curves that cannot be used, and `ExtraMissing` without httpx. No error shows any part of the key.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        api_key: str | None = None,
        dim: int | None = None,
        *,
        id: str | None = None,
        curves: Given = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.id = id or f"openai:{model}"
        self.curves: SimilarityCurves = curves_for(self.id, curves)
        self._model, self._url, self._dim, self._timeout_s = model, _url(base_url), dim, timeout_s
        self._key = _checked(api_key)
        self._client: httpx.Client | None = self._made()
        on_fork(self._forget_client)

    @property
    def dim(self) -> int:
        if self._dim is None:
            self._dim = self._ask(["dimension"]).shape[1]
        return self._dim

    def embed(self, text: str) -> Rows:
        """Return float32 [dim]."""
        vector: Rows = self._ask([text])[0]
        return vector

    def embed_many(self, texts: Sequence[str]) -> Rows:
        """Return float32 [texts, dim]; many texts take several requests."""
        parts = [self._ask(texts[at : at + AT_ONCE]) for at in range(0, len(texts), AT_ONCE)]
        return rows(NAME, [row for part in parts for row in part], len(texts), self._dim)

    def _ask(self, texts: Sequence[str]) -> Rows:
        import httpx  # already loaded by `_made`

        sent = [whole(clip(text)) if text.strip() else NOTHING for text in texts]
        try:
            answer = self._connected().post(self._url, json={"model": self._model, "input": sent})
            answer.raise_for_status()
            found = rows(NAME, _in_order(answer.json()), len(texts), self._dim)
        except httpx.HTTPStatusError as error:
            raise Unavailable(NAME, f"HTTP {error.response.status_code}") from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, BadAnswer) as error:
            raise Unavailable(NAME, f"{type(error).__name__}: {error}") from error
        self._dim = found.shape[1]
        return found

    def _connected(self) -> httpx.Client:
        """Return the client of this process: a forked process must not share connections."""
        if self._client is None:
            self._client = self._made()
        return self._client

    def _forget_client(self) -> None:
        """Drop the connections, which a forked process must not share."""
        self._client = None

    def _made(self) -> httpx.Client:
        """Make a client whose connections are closed with the embedder."""
        try:
            import httpx
        except ImportError as error:
            raise ExtraMissing(NAME, "httpx", "openai-embed") from error
        headers = {"Authorization": f"Bearer {self._key.reveal()}"} if self._key else {}
        client = httpx.Client(headers=headers, timeout=self._timeout_s)
        weakref.finalize(self, client.close)
        return client


def _url(base_url: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("base_url", parts.hostname, "must be an http or https URL")
    path = parts.path.rstrip("/") or "/v1"
    return parts._replace(path=f"{path}/embeddings").geturl()


def _checked(api_key: str | None) -> Secret | None:
    """Validate the key here, because the library's error would show it."""
    if api_key and not is_key(api_key):
        raise ConfigError("api_key", describe_key(api_key), KEY_RULE)
    return Secret(api_key) if api_key else None


def _in_order(answer: object) -> list[object]:
    """Return the vectors ordered by `index`. Raises `BadAnswer` for a malformed response."""
    data = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(data, list) or not all(isinstance(item, Mapping) for item in data):
        raise BadAnswer(NAME, type(answer).__name__, "must be an object with a list `data`")
    by_index = {item.get("index", at): item.get("embedding") for at, item in enumerate(data)}
    if sorted(by_index, key=str) != sorted(range(len(data)), key=str):
        raise BadAnswer(NAME, list(by_index), "must be the indices of the texts")
    return [by_index[at] for at in range(len(data))]
