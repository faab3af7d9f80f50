"""Finds the message line of a result: the one line that says why a call failed."""

from __future__ import annotations

import re

EDGES = 2_000
"""Characters at each end of a result in which the line is looked for."""
LINE = 200
"""Characters of a message line."""
FEW = 12
"""Lines of a result without a complaint up to which the first one is the message."""

_SKIPPED = re.compile(
    r"[\W_]*$|[=\-_*#~.+]{3,}.*[=\-_*#~.+]{3,}$|\+{1,3} \w|\$ |>>> |at \S+ ?\(|File \"|\s*\^+|\s*~*\^|(?:process "
    r"|command |shell )?(?:exited|exit|return)\b.{0,30}(?:code|status|value)\b.{0,12}$|npm (?:ERR!"
    r"|error) (?:A complete log|code|errno|$)|Traceback \(most|During handling|The above exception|(?:stdout|stderr"
    r"|output|error|errors|observation|result)\W{0,3}$|Wall time|Chunk ID|Process (?:running|exited)|</?\w+>$"
    r"|warning: |\S+:\d+: \w*Warning\b|\*{3,} Module \S|\S+\.ChildFailedError:|Here(?:'s| is| are) [^:]*:$"
    r"|WARN|[EWIF]\d{4} \d\d:\d\d:\d\d|oops|Execution of \S+ aborted|\S+\.py:\d+: \w+$|# |> ",
    re.IGNORECASE,
)
"""Rules, traces, wrappers, headings and warnings with their place: never the message."""
_TALLY = re.compile(
    r"^[\W_]*[\w./-]+\W+FAIL(?:ED)?$"
    r"|^(?!.* - )\W*(?:Tests?|Test Suites|Snapshots|Time|Ran|FAIL(?:ED)?|PASS(?:ED)?|---|OK)\b[:\s].*$"
    r"|(?<!port )\b\d+ (?:tests? |specs? )?(?:passed|failed|failing|passing|failures?|errors?|skipped|problems?)\b"
    r"|(?:failures|errors)=\d",
    re.IGNORECASE,
)
_RAISED = re.compile(r"(?:^|\s)(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Failure)\b(?:: |$|:$)")
_PLACE = re.compile(r"\bpanicked at \S+:$|\bAssertionError\b.*:$")
"""A line that says where or what was raised, before the message."""
_VALIDATION = re.compile(r"\b\d+ validation errors? for ")
_STRONG = re.compile(
    r"^E\s{2,}\S|^\w+_test\.go:\d+: |\bunexpected EOF\b|^No files match"
    r"|\berror(?:\[\w+\]|:| TS\d+| C\d+)|\bfatal(?: error)?:|\bpanic(?:ked)?\b|^Error\b|\bERROR:"
    r"|\bundefined reference\b|\bassert\w*(?:ion)?\b.*(?:==|!=|expected|failed)|^npm (?:ERR!|error) \S"
    r"|^\s*(?:AssertionError|Expected|expected)\b|\*\*\* |\b[EFW]\d{3,4}\b",
)
_WEAK = re.compile(
    r"(?i)\berrors?\b|\bexception\b|\bfail(?:ed|ure|s)?\b|\bnot found\b|\bno such\b|\bcannot\b|\bcan't\b|\bcould not\b"
    r"|\bcouldn't\b|\bunable\b|\binvalid\b|\bunknown\b|\bdenied\b|\bnot (?:allowed|exist|recognized|permitted|defined"
    r"|unique|valid|supported)\b|\bmissing\b|\bmust\b|\bunexpected\b|\bdid not\b|\bdoes not\b|\btimed? ?out\b"
    r"|\brefused\b|\bforbidden\b|\bunauthorized\b|\bdoesn't\b|\bundefined\b|\bmismatch\b|\bdeprecated\b"
    r"|\bno replacement\b|\bmalformed\b|\bexceeded\b|\brejected\b"
)


def message_line(text: str) -> str:
    """Return the line of a failed result that says why: the last one raised, an error by its form, or a complaint.

    Without one it is the first line with a letter of a few; "" for none, since a tally says nothing of the cause.
    """
    if len(text) > 2 * EDGES:
        text = f"{text[:EDGES]}\n{text[-EDGES:]}"
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not _SKIPPED.match(line)]
    said = [line for line in lines if not _TALLY.search(line)]
    if raised := [at for at, line in enumerate(said) if _RAISED.search(line[:LINE])]:
        return _whole(said, raised[-1])
    for pattern in (_STRONG, _WEAK):
        for at, line in enumerate(said):
            if pattern.search(line[: 2 * LINE]):
                return _whole(said, at)
    return next((line for line in said if any(map(str.isalpha, line))), "")[:LINE] if len(said) <= FEW else ""


def _whole(lines: list[str], at: int) -> str:
    """Return a line, with the next one if that is where its message stands."""
    line, after = lines[at], lines[at + 1 : at + 3]
    if after and (_RAISED.fullmatch(line) or _PLACE.search(line)):
        line = f"{line} {after[0]}"
    elif after and line.startswith("Expected: ") and after[0].startswith("Received: "):
        line = f"{line}, {after[0]}"
    elif len(after) == 2 and _VALIDATION.search(line):
        line = f"{line}: {after[0]}: {after[1]}"
    return line[:LINE]
