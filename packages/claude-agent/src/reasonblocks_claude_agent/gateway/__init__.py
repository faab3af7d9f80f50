"""The mode "gateway": a proxy on loopback between a session's CLI and its provider. Needs the extra `gateway`."""

from __future__ import annotations

from ._pending import GATEWAY_CAPS
from ._proxy import Gateway

__all__ = ["GATEWAY_CAPS", "Gateway"]
