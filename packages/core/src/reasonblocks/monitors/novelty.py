"""Measures what each completed step brings that was not there before: how much of its result earlier results had.

A result is read as pairs of words, of its first 800 and last 400 characters. The pairs of earlier results are kept in
two sets of bits: when the newer one is full, it replaces the older one. So the measure looks some 50 to 200 steps back
and takes at most 2 KB of a snapshot. Of a result with many pairs a quarter is kept, chosen by their hashes; a later
result is therefore also compared by that quarter of its own pairs.

A set of bits has false positives. The share of new pairs is corrected for them: of n pairs that are really new, only
n * (1 - fill) are found to be new.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Collection, Mapping, Sequence
from zlib import crc32

from ..types import JSON, Novelty, Step, ToolCall
from ..util.json import canonical

OWN_MEMORY = "_novelty"
"""The key of this memory among those of the monitors; snapshots have it."""

HEAD, TAIL = 800, 400
"""Characters of a step's results that are read at the start and at the end."""
PLACES = 4_096
"""Bits of a set of word pairs; each pair sets the bit of its hash."""
FULL = 1_400
"""Set bits above which a set is full."""
MANY = 48
"""Pairs of words above which only the quarter whose hashes are multiples of 4 is kept."""
ENOUGH = 6
"""Pairs of that quarter from which on its share of new ones means something."""
FEW = 5
"""Pairs of words below which a result is an acknowledgement ("ok", "done") that says nothing when it comes again."""
KEPT = 20
"""Calls and results whose hashes are remembered: the newest ones."""
ERRORS_KEPT = 6
"""Steps in which the same error line is looked for."""
STALE, STALE_ERROR = 0.1, 0.5
"""Shares of new pairs below which a result brings nothing: any one, and that of an error whose line was in one of the
last 6 steps. A call made before may also bring a few new words or a number: so a running process makes progress."""
BITS = 0xFFFF
"""The bits of a hash that are stored. If two hashes collide, something new is taken for known."""
LINE = 160
"""Characters of an error line that are compared."""
ARGUMENTS = 2_000
"""Characters of each call's arguments that are compared, at the start."""

_MARKS = (b"rror", b"xception", b"ailed", b"ailure", b"raceback", b"ot found", b"o such", b"enied", b"nvalid")
"""Ends of the words that announce an error, in either case of their first letter."""
_DIGITS = b"0123456789"
_EMPTY = b2a_base64(bytes(PLACES // 8), newline=False).decode()


def observe(step: Step, memory: JSON) -> tuple[Novelty, dict[str, JSON]]:
    """Return what the step brought, and the memory after it; a pure function."""
    kept: Mapping[str, JSON] = memory or {}  # type: ignore[assignment]  # as this function wrote it
    text = _text(step)
    call, error = _call(step.tool_calls), _error(text)
    result = crc32(text.translate(None, _DIGITS) if error else text) & BITS
    pairs = _pairs(text)
    quarter = [pair for pair in pairs if not pair & 3]
    seen = _Seen(kept)
    fresh = seen.fresh(pairs, quarter)
    calls: list[int] = kept.get("calls") or []  # type: ignore[assignment]
    results: list[int] = kept.get("results") or []  # type: ignore[assignment]
    errors: list[int] = kept.get("errors") or []  # type: ignore[assignment]
    same_call = call in calls
    meant = len(pairs) >= FEW
    now = Novelty(
        fresh=fresh,
        same_call=same_call,
        same_result=result in results and bool(step.tool_results),
        error=error != 0,
        same_error=error != 0 and error in errors,
    )
    if now.same_result:
        now.elsewhere = (call, result) not in zip(calls, results, strict=True)
    now.stale = _is_stale(now, meant=meant)
    left: dict[str, JSON] = {
        "calls": [*calls, call][-KEPT:],
        "results": [*results, result][-KEPT:],
        "errors": [*errors, error][-ERRORS_KEPT:],
        **seen.after(pairs if len(pairs) <= MANY else quarter),
    }
    return now, left


def _is_stale(now: Novelty, *, meant: bool) -> bool:
    again = now.same_call and now.same_result and not now.elsewhere
    return again or (meant and now.fresh < STALE) or (now.same_error and now.fresh < STALE_ERROR)


def _text(step: Step) -> bytes:
    """Return the start and the end of the results; of the thought, if nothing was asked and nothing came."""
    results = step.tool_results
    if not any(result.output for result in results) and not any(call.arguments for call in step.tool_calls):
        text = step.thought or step.reasoning
    else:
        text = results[0].output if len(results) == 1 else "\n".join([result.output for result in results[:32]])
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]}\n{text[-TAIL:]}"
    return text.encode("utf-8", "replace")


def _call(calls: Sequence[ToolCall]) -> int:
    """Return a hash of all calls; 0 for none. White space within arguments counts, because in code it has meaning."""
    if not calls:
        return 0
    said = sorted([f"{call.name} {canonical(call.arguments)[:ARGUMENTS]}" for call in calls[:32]])
    return (crc32("\n".join(said).encode("utf-8", "replace")) & BITS) or 1


def _pairs(text: bytes) -> frozenset[int]:
    """Return a hash of each pair of neighbouring words: that of the second continues that of the first."""
    words = text.split()
    first = map(crc32, words)
    return frozenset(map(crc32, words[1:], first) if len(words) > 1 else first)


def _error(text: bytes) -> int:
    """Return a hash of the first line that announces an error, without its digits; 0 for none."""
    found = [place for mark in _MARKS if (place := text.find(mark)) >= 0]
    if not found:
        return 0
    start = text.rfind(b"\n", 0, min(found)) + 1
    line = text[start : start + LINE].partition(b"\n")[0]
    return (crc32(line.strip().translate(None, _DIGITS)) & BITS) or 1


class _Seen:
    """The pairs of words of earlier results, in two sets of bits: the older one as the text that the memory holds."""

    __slots__ = ("_bits", "_kept", "_new", "_places")

    def __init__(self, kept: Mapping[str, JSON]) -> None:
        self._kept = kept.get("old") or ""
        self._new = a2b_base64(kept.get("new") or _EMPTY)  # type: ignore[arg-type]  # a string
        self._bits = int.from_bytes(self._new, "little")
        if self._kept:
            self._bits |= int.from_bytes(a2b_base64(self._kept), "little")  # type: ignore[arg-type]  # a string
        self._places = self._bits.to_bytes(PLACES // 8, "little")

    def fresh(self, pairs: frozenset[int], quarter: Sequence[int]) -> float:
        """Return the share of the pairs that are new; for many pairs, or of a longer earlier result, by a quarter."""
        if not pairs:
            return 1.0
        share = self._share(quarter) if len(quarter) >= ENOUGH else 1.0
        if share and len(pairs) <= MANY:
            share = min(share, self._share(pairs))
        return round(min(1.0, share / (1 - self._bits.bit_count() / PLACES)), 3) if share < 1.0 else 1.0

    def _share(self, pairs: Collection[int]) -> float:
        places = self._places
        return 1 - sum([places[pair >> 5 & 511] >> (pair >> 2 & 7) & 1 for pair in pairs]) / len(pairs)

    def after(self, pairs: Collection[int]) -> dict[str, JSON]:
        """Return the sets with these pairs."""
        new = bytearray(self._new)
        for pair in pairs:
            new[pair >> 5 & 511] |= 1 << (pair >> 2 & 7)
        text = b2a_base64(new, newline=False).decode()
        if int.from_bytes(new, "little").bit_count() > FULL:
            return {"new": "", "old": text}
        return {"new": text, "old": self._kept}
