"""The requirements of the workbench's extras, for errors that name what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "learn": ("detect-secrets>=1.5",),
        "mcp": ("detect-secrets>=1.5", "mcp>=2,<3"),
    }
)
"""The requirements of each extra, as in `pyproject.toml`."""
