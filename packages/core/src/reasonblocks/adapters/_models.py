"""Whether two names mean one model."""

from __future__ import annotations

import re
from functools import lru_cache

_PREFIX = re.compile(r"^(?:[a-z_-]+:)?(?:.*/)?")
_RELEASE = re.compile(r"[-@](latest|\d{8}|\d{4}-\d{2}-\d{2})$")


def same_model(one: str, other: str) -> bool:
    """Whether two names mean one model: "anthropic:claude-x" is "claude-x-20250101"."""
    return _bare(one) == _bare(other)


@lru_cache(maxsize=256)
def _bare(name: str) -> str:
    return _RELEASE.sub("", _PREFIX.sub("", name.lower()))
