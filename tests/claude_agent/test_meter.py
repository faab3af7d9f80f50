"""What is read of an answer while it passes, however it is cut."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks_claude_agent.gateway._meter import Meter

EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"usage": {"output_tokens": 1}}},
    {"type": "content_block_start", "content_block": {"type": "redacted_thinking", "data": "sealed"}},
    {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "signed"}},
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": '"message_delta" "message_stop"'}},
    {"type": "message_delta", "usage": {"output_tokens": 42}},
    {"type": "message_stop"},
]
STREAM = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in EVENTS)
STREAMED = {"content-type": "text/event-stream; charset=utf-8"}


def told(meter: Meter) -> tuple[int | None, list[str], bool]:
    return meter.output_tokens, meter.seals, meter.complete


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_a_stream_is_read_alike_wherever_it_is_cut(cuts: list[int]) -> None:
    meter = Meter(STREAMED)
    begin = 0
    for end in [*sorted(cuts), len(STREAM)]:
        meter.feed(STREAM[begin:end])
        begin = end
    assert told(meter) == (42, ["sealed", "signed"], True)


def test_a_zipped_stream_is_read() -> None:
    meter = Meter({**STREAMED, "content-encoding": "gzip"})
    meter.feed(gzip.compress(STREAM))
    assert told(meter) == (42, ["sealed", "signed"], True)


def test_a_stream_that_broke_off_is_not_complete() -> None:
    meter = Meter(STREAMED)
    meter.feed(STREAM[: len(STREAM) // 2])
    meter.ended()
    assert not meter.complete


def test_a_whole_answer_is_read_at_its_end() -> None:
    meter = Meter({"content-type": "application/json"})
    content = [{"type": "thinking", "thinking": "hm", "signature": "signed"}]
    meter.feed(json.dumps({"content": content, "usage": {"output_tokens": 7}}).encode())
    meter.ended()
    assert told(meter) == (7, ["signed"], True)


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_what_cannot_be_read_is_complete_when_it_ends(encoding: str) -> None:
    meter = Meter({**STREAMED, "content-encoding": encoding})
    meter.feed(b"\x00")
    meter.ended()
    assert told(meter) == (None, [], True)
