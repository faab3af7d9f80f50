"""The client of a ReasonBlocks server: an evaluator, stores and a sink over one transport."""

from __future__ import annotations

from ._address import Address, address_of, key_of
from ._connections import Ask, Reply
from ._exchange import Exchange
from ._sink import HttpSink
from .findings import HttpFindings

__all__ = ["Address", "Ask", "Exchange", "HttpFindings", "HttpSink", "Reply", "address_of", "key_of"]
