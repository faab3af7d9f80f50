"""Writes spans as OTLP/JSON, the format of the collector's file exporter, for the tests of readers."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.common", reason="needs opentelemetry-exporter-otlp-proto-common")
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan

IDS = ("traceId", "spanId", "parentSpanId")
message_to_dict: Any = import_module("google.protobuf.json_format").MessageToDict  # has no types


def spans_json(spans: Sequence[ReadableSpan]) -> str:
    """Return one line of a file of spans."""
    body = message_to_dict(encode_spans(spans), use_integers_for_enums=True)
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
