"""The sink that emits runs as OpenTelemetry spans and log events."""

from __future__ import annotations

from ._sink import OpenTelemetrySink

__all__ = ["OpenTelemetrySink"]
