"""Writes spans and log records as OTLP/JSON, the format of the collector's file exporter, for the tests of readers."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.common", reason="needs opentelemetry-exporter-otlp-proto-common")
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.trace import ReadableSpan

IDS = ("traceId", "spanId", "parentSpanId")


def spans_json(spans: Sequence[ReadableSpan]) -> str:
    """Return one line of a traces file."""
    return _json(encode_spans(spans))


def logs_json(records: Sequence[ReadableLogRecord]) -> str:
    """Return one line of a logs file."""
    return _json(encode_logs(records))


def _json(request: Any) -> str:
    body = MessageToDict(request, use_integers_for_enums=True)
    return json.dumps(_with_hexadecimal_ids(body), ensure_ascii=False)


def _with_hexadecimal_ids(value: Any) -> Any:
    """OTLP/JSON has hexadecimal ids, unlike the JSON of protobuf, whose bytes are base64."""
    if isinstance(value, list):
        return [_with_hexadecimal_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(item).hex() if key in IDS else _with_hexadecimal_ids(item) for key, item in value.items()
    }
