"""The self-hosted server of ReasonBlocks: the HTTP API of the core over a database, and a dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import create_app
    from .settings import Settings

__version__ = "0.1.0"

__all__ = ["Settings", "__version__", "create_app"]


def __getattr__(name: str) -> Any:
    """Import the application on first use: commands that serve nothing need no web framework."""
    if name == "Settings":
        from .settings import Settings

        return Settings
    if name == "create_app":
        from .app import create_app

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
