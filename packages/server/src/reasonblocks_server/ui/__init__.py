"""The dashboard: pages for people, on the templates of the core's reports."""

from __future__ import annotations

from ._site import router

__all__ = ["router"]
