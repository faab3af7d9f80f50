"""Sends the events of runs to a server, in batches."""

from __future__ import annotations

import gzip
import logging
import time
from collections.abc import Sequence
from dataclasses import fields
from json import JSONEncoder
from typing import Any

from ..._json import canonical, compact, evolve, storable_json
from ..._secret import Secret
from ..._text import clip, whole
from ...events import Event
from ...exceptions import BadAnswer, Refused, Unavailable
from ._address import address_of, key_of
from ._exchange import KEY_REFUSED, Ask, Exchange, Reply

logger = logging.getLogger("reasonblocks")

BODY_BYTES = 1_000_000
"""The largest body of a batch before compression (WIRE: 1 MB)."""
GZIP_BYTES = 1_024
"""A larger body is compressed."""
OFF_SECONDS = 60.0
"""Seconds for which nothing is sent after the server refused the key."""
AGAIN = (408, 425, 429)
"""Statuses after which events are sent again, as after 5xx."""
TOO_LARGE = 413


class HttpSink:
    """Sends every event to the server at `url`, from a background thread.

    While the server cannot be reached, up to 1,000 events wait, and the oldest steps are dropped first. Events are also
    dropped if the server refuses them or the key. The sink works without `base_url`: the server then shows the runs,
    and all decisions are made in this process. Raises `ConfigError`, and `ExtraMissing` without httpx.
    """

    remote = True
    """True because events leave the process: the end of a run waits only briefly, and REASONBLOCKS_DISABLED=1 removes
    the sink."""

    batch_seconds = 0.2
    """Events within this time are sent together, at most 64 of them (WIRE)."""

    def __init__(self, url: str, api_key: str | Secret | None = None) -> None:
        key = api_key if isinstance(api_key, Secret) else key_of("api_key", api_key)
        self._exchange = Exchange(address_of("url", url, key))
        self.url = self._exchange.address.url
        self._most: int | None = None
        """The most events of a batch, once the server refused a larger one."""
        self._off_until = 0.0
        self._said: set[str] = set()

    def emit(self, event: Event) -> None:
        self.emit_many((event,), 5.0)

    def emit_many(self, events: Sequence[Event], seconds: float) -> int:
        """Send a batch, a smaller one if it is too large. Raises `Unavailable`, and `Refused` for dropped events."""
        ends = time.monotonic() + seconds
        if (off := self._off_until - time.monotonic()) > 0:
            raise Refused(self._exchange.address.shown, f"the key was refused; the next attempt is in {off:.0f} s")
        bodies = _bodies(events[: self._most])
        while True:
            reply = self._post(bodies, ends)
            if reply.status != TOO_LARGE or len(bodies) == 1:
                break
            self._most = len(bodies) // 2
            bodies = bodies[: self._most]
        self._check(reply)
        return len(bodies)

    def close(self) -> None:
        self._exchange.close()

    def _post(self, bodies: list[bytes], ends: float) -> Reply:
        body = b'{"events":[' + b",".join(bodies) + b"]}"
        headers = {"content-type": "application/json"}
        if len(body) > GZIP_BYTES:
            body, headers["content-encoding"] = gzip.compress(body, 5), "gzip"
        left = ends - time.monotonic()
        if left <= 0:
            raise Unavailable(self._exchange.address.shown, "no time is left for the request")
        try:
            return self._exchange.send(Ask(path="/monitor/events", body=body, headers=headers), left)
        except BadAnswer as exc:
            raise Unavailable(self._exchange.address.shown, exc.rule) from None

    def _check(self, reply: Reply) -> None:
        address = self._exchange.address
        if reply.is_success:
            self._say_refused(reply)
            return
        if reply.status in AGAIN or reply.status >= 500:
            raise Unavailable(address.shown, self._exchange.reason(reply), retry_after=reply.retry_after)
        if reply.status in KEY_REFUSED:
            self._off_until = time.monotonic() + OFF_SECONDS
            raise Refused(address.shown, f"{self._exchange.reason(reply)}, with {address.shown_key}")
        raise Refused(address.shown, self._exchange.reason(reply))

    def _say_refused(self, reply: Reply) -> None:
        """Log once that the server accepted a batch but refused some of its events."""
        try:
            refused = reply.json(self._exchange.address.shown).get("refused")
        except BadAnswer as exc:
            raise Unavailable(self._exchange.address.shown, exc.rule) from exc
        if refused and "refused" not in self._said:
            self._said.add("refused")
            text = "%s refused events, for example %.200r (logged once per sink)"
            logger.warning(text, self._exchange.address.shown, refused)


def _bodies(events: Sequence[Event]) -> list[bytes]:
    """Return the first events that fit into one body, as JSON; at least one, which is shortened if it is too large."""
    bodies: list[bytes] = []
    left = BODY_BYTES - len('{"events":[]}')
    for event in events:
        body = _encoded(event)
        if len(body) > BODY_BYTES // 2:
            body = _encoded(_shortened(event))
        left -= len(body) + 1
        if left < 0 and bodies:
            break
        bodies.append(body)
    return bodies


def _encoded(event: Event) -> bytes:
    """Return the event as JSON; values that JSON does not have, such as a NaN, are replaced by similar ones."""
    body = event.as_dict()
    try:
        return whole(_STRICT.encode(body)).encode()
    except (TypeError, ValueError, RecursionError):
        return whole(compact(storable_json(canonical(body)))).encode()


_STRICT = JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _shortened(event: Event) -> Event:
    """Return the event with the first and last 8,000 characters of each longer text."""
    return evolve(event, **{field.name: _clipped(getattr(event, field.name)) for field in fields(event)})


def _clipped(value: Any) -> Any:
    if isinstance(value, str):
        return clip(value)
    if isinstance(value, tuple):
        return tuple([_clipped(item) for item in value])
    if isinstance(value, dict):
        return {key: _clipped(item) for key, item in value.items()}
    return value
