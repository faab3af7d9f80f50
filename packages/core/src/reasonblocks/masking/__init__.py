"""Masks secrets in texts that are kept or shown, by their names, their forms and the detectors of detect-secrets."""

from __future__ import annotations

from ._accounts import ACCOUNTS, HOME, unless_common
from ._secret_names import MASK, announces
from ._secrets import detectors, masked_finding, without_secrets

__all__ = ["ACCOUNTS", "HOME", "MASK", "announces", "detectors", "masked_finding", "unless_common", "without_secrets"]
