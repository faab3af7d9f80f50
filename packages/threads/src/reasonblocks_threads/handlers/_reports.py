"""Reports of executions: checks what an action returned, and makes the failures of those that returned nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import get_args, get_type_hints

from ..engine.described import describe_error, mask_text
from ..log.limits import OUTPUT_BYTES, SUMMARY_CHARS
from ..values import Report
from ._calls import Outcome

WORD_CHARS = 80
TO_CHARS = 200
DISPOSITIONS = frozenset(get_args(get_type_hints(Report)["disposition"]))


def report_of(outcome: Outcome[object], action: str, seconds: float) -> Report:
    """Return the checked report of a call. An error, a deadline and an unusable value are failures."""
    if outcome.late is not None:
        return Report.failed(
            f"{action} did not report within {seconds:g} s. It may have acted, and may still act.", code="deadline"
        )
    if outcome.error is not None:
        return Report.failed(f"{action} raised {describe_error(outcome.error)}", code="error")
    if not isinstance(outcome.value, Report):
        found = type(outcome.value).__name__
        return Report.failed(
            f"{action} returned {found} and no Report, so what it did is unknown.", code="outcome_unknown"
        )
    return check_report(outcome.value, action)


def check_report(report: Report, action: str) -> Report:
    """Return a report of usable fields: texts are cut, and an output that is no small plain JSON is left out."""
    succeeded: object = report.succeeded
    if not isinstance(succeeded, bool) or report.disposition not in DISPOSITIONS:
        return Report.failed(
            f"{action} returned a Report with succeeded={report.succeeded!r} and disposition="
            f"{report.disposition!r}, so what it did is unknown."[:SUMMARY_CHARS],
            code="outcome_unknown",
        )
    summary = text(report.summary, SUMMARY_CHARS)
    if not report.succeeded:
        code = text(report.code, WORD_CHARS) or "failed"
        return Report.failed(summary, code=code, retryable=report.retryable is True)
    return Report(
        succeeded=True,
        disposition=report.disposition,
        summary=summary,
        partial=report.partial is not False,
        to=text(report.to, TO_CHARS),
        output=_output(report.output),
    )


def text(value: object, limit: int) -> str:
    """Return a text without secrets, cut to a limit; anything else as its text."""
    try:
        found = value if isinstance(value, str) else "" if value is None else str(value)
    except Exception:  # noqa: BLE001 - the caller's __str__
        found = type(value).__name__
    found = mask_text(found[: 8 * limit]).strip()
    return found if len(found) <= limit else f"{found[: limit - 1]}…"


def _output(output: object) -> Mapping[str, object]:
    if not output:
        return {}
    try:
        line = json.dumps(output, allow_nan=False)
        found = json.loads(line)
    except (TypeError, ValueError, RecursionError):
        return {"omitted": "it is not plain JSON"}
    if not isinstance(found, dict):
        return {"omitted": "it is not an object"}
    if len(line) > OUTPUT_BYTES:
        return {"omitted": f"it has {len(line)} bytes, of which a log takes {OUTPUT_BYTES}"}
    return found
