"""Writes spans as OTLP/JSON, the format of the collector's file exporter, for the tests of readers.

`python -m tests.core.otel.otlp FILE` writes those of the recorded run.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.core.otel.recorded import record
from tests.core.otel.world import CONTENT, Memory, ReadableSpan

COMMON = "opentelemetry.exporter.otlp.proto.common"
IDS = ("traceId", "spanId", "parentSpanId")
pytest.importorskip(COMMON, reason="needs opentelemetry-exporter-otlp-proto-common")
encode_spans: Any = import_module(f"{COMMON}.trace_encoder").encode_spans
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


if __name__ == "__main__":
    os.environ[CONTENT] = "true"
    memory = Memory()
    record(memory)
    Path(sys.argv[1]).write_text(spans_json(memory.spans) + "\n", encoding="utf-8")
