"""The self-hosted server of ReasonBlocks: the HTTP API of the core over a database, and a dashboard."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
