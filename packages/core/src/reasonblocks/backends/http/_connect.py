"""Makes the HTTP client of one server: its headers, certificates, proxies, and how many connections it keeps."""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from typing import TYPE_CHECKING

from ...exceptions import ConfigError, ExtraMissing
from ._address import Address
from ._loop import THREAD_NAME

if TYPE_CHECKING:
    import ssl

    import httpx

IDLE_SECONDS = 30.0
"""Seconds that an unused connection is kept: agents make a step every few seconds."""
MOST_CONNECTIONS, MOST_IDLE = 256, 32
"""Connections to one server at once, as many as a worker of it serves, and those of them that are kept unused."""


def connect(address: Address) -> httpx.AsyncClient:
    """Return a client without connections. Raises `ExtraMissing`, and `ConfigError` for variables that httpx refuses.

    The client gets its key last, so that no frame of such an error has it.
    """
    try:
        import httpx  # for those who have a server
    except ImportError as exc:
        raise ExtraMissing("a ReasonBlocks server", "httpx", "http") from exc
    logging.getLogger("httpx").addFilter(_is_foreign)
    try:
        client = httpx.AsyncClient(
            headers={"accept": "application/json", "accept-encoding": "identity", "user-agent": "reasonblocks-core"},
            timeout=None,  # the deadline is one for the whole exchange, and cancels it
            follow_redirects=False,  # a redirect would carry the agent's texts to another server
            limits=httpx.Limits(
                max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_IDLE, keepalive_expiry=IDLE_SECONDS
            ),
            trust_env=not address.loopback,  # proxies
            verify=_tls(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
        )
    except Exception as exc:  # a missing file or package, or a URL that is none
        rule = f"cannot be asked with these variables for proxies and certificates: {type(exc).__name__}: {exc}"
        raise ConfigError("base_url", address.url, rule) from exc
    if address.key is not None:
        client.headers["authorization"] = f"Bearer {address.key.reveal()}"
    return client


@lru_cache(maxsize=4)
def _tls(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Return the TLS context for these variables, the same for all servers: one takes 30 ms and 0.6 MB."""
    import httpx  # imported by `connect`

    return httpx.create_ssl_context()


def _is_foreign(record: logging.LogRecord) -> bool:
    """Return False for the line that httpx logs for each of our requests: a program's log would be full of them."""
    return record.threadName != THREAD_NAME
