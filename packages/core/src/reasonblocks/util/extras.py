"""Builds install commands: holds the requirements of the core's extras, and the folders of our packages in a clone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "cost": ("genai-prices>=0.0.60",),
        "http": ("httpx[http2]>=0.27",),
        "memory": ("detect-secrets>=1.5",),
        "openai-embed": ("httpx>=0.27",),
        "otel": ("opentelemetry-api>=1.38",),
        "qdrant": ("httpx[http2]>=0.27", "qdrant-client>=1.12"),
    }
)
"""The requirements of each extra, as in `pyproject.toml`.

Errors name these instead of the extra, because none of our packages is on a package index.
"""


def pip_install(requirements: Iterable[str]) -> str:
    """Return the `pip install` command, quoted for a shell."""
    from shlex import join  # for an error only

    return join(("pip", "install", *requirements))


def folder_of(distribution: str) -> str:
    """Return the folder of one of our distributions in a clone, because none of them is on a package index."""
    return f"./packages/{distribution.removeprefix('reasonblocks-')}"
