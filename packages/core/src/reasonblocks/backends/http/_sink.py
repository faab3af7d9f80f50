"""Sends the events of runs to a server, in batches."""

from __future__ import annotations

import gzip
import json
import logging
import time
from collections.abc import Sequence
from itertools import islice
from json import JSONEncoder

from ...events import Event
from ...exceptions import BadAnswer, Refused, Unavailable
from ...types import JSON
from ...util.json import DEEPEST, canonical, compact, storable_json
from ...util.secret import Secret
from ...util.text import whole
from ._address import address_of, key_of
from ._connections import Ask, Reply
from ._exchange import KEY_REFUSED, Exchange

logger = logging.getLogger("reasonblocks")

BODY_BYTES = 1_000_000
"""The largest body of a batch before compression (WIRE: 1 MB)."""
LARGEST_EVENT = BODY_BYTES // 2
"""A larger event is shortened."""
SHORTER = ((8_000, 1_000), (1_000, 256), (100, 64), (50, 24))
"""The characters of each end of a text, and the entries of a list, until an event is small enough."""
NAME_CHARS = 200
"""Characters of a name in an object that is shortened."""
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
            raise Refused(self._exchange.address.shown, f"the key, for {off:.0f} s more", logged=True)
        bodies = _bodies(events[: self._most])
        while True:
            reply = self._post(bodies, ends)
            if reply.status != TOO_LARGE or len(bodies) == 1:
                break
            self._most = len(bodies) // 2
            bodies = bodies[: self._most]
        self._check(reply, len(bodies))
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

    def _check(self, reply: Reply, sent: int) -> None:
        address = self._exchange.address
        if reply.is_success:
            self._say_refused(reply)
            return
        if reply.status in AGAIN or reply.status >= 500:
            raise Unavailable(address.shown, self._exchange.reason(reply), retry_after=reply.retry_after)
        if reply.status in KEY_REFUSED:
            self._off_until = time.monotonic() + OFF_SECONDS
            self._exchange.key_refused(reply.status)
            raise Refused(address.shown, self._exchange.reason(reply), logged=True)
        raise Refused(address.shown, self._exchange.reason(reply), events=sent)

    def _say_refused(self, reply: Reply) -> None:
        """Log once that the server accepted a batch but refused some of its events."""
        try:
            refused = reply.json(self._exchange.address.shown).get("refused")
        except BadAnswer as exc:
            raise Unavailable(self._exchange.address.shown, exc.rule) from exc
        if refused and "refused" not in self._said:
            self._said.add("refused")
            text = "%s refused events, for example %.200s (logged once per sink)"
            logger.warning(text, self._exchange.address.shown, self._exchange.address.hide(repr(refused)))


def _bodies(events: Sequence[Event]) -> list[bytes]:
    """Return the first events that fit into one body, as JSON; at least one, which is shortened if it is too large."""
    bodies: list[bytes] = []
    left = BODY_BYTES - len('{"events":[]}')
    for event in events:
        body = _encoded(event)
        if len(body) > LARGEST_EVENT:
            body = _shortened(body)
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


def _shortened(body: bytes) -> bytes:
    """Return the JSON of an event with less of its long texts, and at last with fewer entries of its long lists."""
    event, short = json.loads(body), body
    for edge, entries in SHORTER:
        short = compact(_cut(event, edge, entries, 0)).encode()
        if len(short) <= LARGEST_EVENT:
            break
    return short


def _cut(value: JSON, edge: int, entries: int, depth: int) -> JSON:
    """Return JSON with the ends of each longer text, and with the first entries of each longer list or object."""
    if isinstance(value, str):
        return value if len(value) <= 2 * edge else f"{value[:edge]}\n{value[-edge:]}"
    if depth >= DEEPEST and isinstance(value, (list, dict)):
        return "..."
    if isinstance(value, list):
        return [_cut(item, edge, entries, depth + 1) for item in value[:entries]]
    if isinstance(value, dict):
        shown = islice(value.items(), entries)
        return {name[:NAME_CHARS]: _cut(item, edge, entries, depth + 1) for name, item in shown}
    return value
