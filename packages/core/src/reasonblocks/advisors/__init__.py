"""Ready-made advisors: models that are asked what a stuck run should try next."""

from __future__ import annotations

from ._endpoint import chat

__all__ = ["chat"]
