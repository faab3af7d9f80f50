"""Validates what is given to a memory, redacts it, and masks its secrets; no error shows one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..exceptions import ConfigError, ExtraMissing
from ..findings import check_finding, checked_path
from ..types import Finding
from ..util.secret import describe_key
from ..util.text import preview

FIELDS = ("content", "file_path", "finding_type", "metadata")
"""The fields of a finding that a caller gives."""
SHOWN = 500
"""Characters of an invalid value that an error may show. Of a longer one, half of a secret could be shown."""


class Cleaner:
    """Redacts texts with the caller's function, if there is one, and masks their secrets.

    Findings need the detectors of the extra `memory`. Without it, the other texts, which are not stored, are masked by
    our own rules alone.
    """

    def __init__(self, redact: Callable[[str], str] | None) -> None:
        from ..masking import masked_finding, without_secrets  # many patterns: 30 ms
        from ..options.values import plain_call_back

        self._redact, self._masked_finding = plain_call_back("redact", redact), masked_finding
        try:
            self.need_detectors()
            self._masked: Callable[[str], str] = without_secrets
        except ExtraMissing:
            self._masked = partial(without_secrets, detected=False)

    def need_detectors(self) -> None:
        """Raise `ExtraMissing` if findings cannot be cleaned."""
        from ..masking import detectors

        detectors("storing in codebase memory")

    def text(self, text: str) -> str:
        """Return a text without secrets. Raises `ConfigError` if `redact` returns no text."""
        if self._redact is not None and text:
            text = self._redact(text)
            if not isinstance(text, str):
                raise ConfigError("redact", type(text).__name__, "must return a text")
        return self._masked(text)

    def finding(self, given: Finding, relative: Callable[[str], str]) -> Finding:
        """Return a finding that is valid before and after its texts are cleaned. Raises `ExtraMissing`."""
        self.need_detectors()
        found = self._valid(given)
        found = replace(found, file_path=relative(found.file_path))
        return self._valid(self._masked_finding(found, self.text))

    def path(self, path: object, relative: Callable[[str], str]) -> str:
        """Return a path in the form in which findings have it."""
        try:
            return checked_path(self.text(relative(checked_path(path))))
        except ConfigError as exc:
            raise self._safe(exc, path) from None

    def refuse_secret(self, name: str, value: str) -> None:
        """Raise `ConfigError` for a name that has a secret, because names are stored as they are."""
        if (masked := self._masked(value)) != value:
            raise ConfigError(name, masked, "must not contain a secret, which is masked here as #")

    def _valid(self, finding: Finding) -> Finding:
        try:
            return check_finding(finding)
        except ConfigError as exc:
            raise self._safe(exc, getattr(finding, exc.name, None)) from None

    def _safe(self, error: ConfigError, given: object) -> ConfigError:
        """Return the error with its value masked, or described if it may be too long for masking all of it."""
        if isinstance(given, str) and error.name != "content" and len(given) <= SHOWN:
            return ConfigError(error.name, preview(self._masked(given), SHOWN), error.rule)
        return ConfigError(error.name, describe_key(given), error.rule)


def texts(name: str, given: object) -> list[Any]:
    """Return the items of an argument. Raises `ConfigError` for a single text, whose items would be its characters."""
    if isinstance(given, (str, bytes, Mapping, os.PathLike)) or not isinstance(given, Iterable):
        raise ConfigError(name, describe_key(given), "must be a list")
    return list(given)
