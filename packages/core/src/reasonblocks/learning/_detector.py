"""Finds secrets in a text with the detectors of detect-secrets, which look at nothing but the text.

The scan of detect-secrets, which may verify findings over the network, is never called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

from ..exceptions import ExtraMissing
from ._secret_names import MASK, is_no_secret

__all__ = ["detectors", "without_detected"]

SHORTEST = 5
"""The shortest finding that is masked everywhere; a shorter one would also mask ordinary words."""
_LEFT_OUT = frozenset({"Public IP (ipv4)", "Private Key", "Base64 High Entropy String", "Hex High Entropy String"})
"""Detectors that other rules replace: numbers, key blocks, and long words of mixed case or of hex digits are masked."""
_AROUND = " \t\n\"'=:"
"""Characters around the secret that some findings include."""
Find: TypeAlias = Callable[[str], Iterable[str]]


@lru_cache(maxsize=1)
def detectors() -> tuple[Find, ...]:
    """Return the detectors of detect-secrets. Raises `ExtraMissing`, with the command that installs it."""
    try:
        util: Any = import_module("detect_secrets.core.plugins.util")
    except ImportError as error:
        raise ExtraMissing("learning", "detect-secrets", "learn") from error
    found = util.get_mapping_from_secret_type_to_class()
    return tuple(found[kind]().analyze_string for kind in sorted(found) if kind not in _LEFT_OUT)


def without_detected(text: str) -> str:
    """Replace every secret that a detector finds by "#"."""
    for find in detectors():
        for secret in sorted(filter(_tells, {one.strip(_AROUND) for one in find(text)}), key=len, reverse=True):
            text = text.replace(secret, MASK)
    return text


def _tells(found: str) -> bool:
    return len(found) >= SHORTEST and not is_no_secret(found, "password", said=False)
