"""Every error that this library raises on purpose, under one root.

Each carries the data of its message as fields, so that callers never parse text.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "AdapterMissing",
    "BadAnswer",
    "ConfigError",
    "DeadlineExceeded",
    "ExtraMissing",
    "ForeignDistribution",
    "NotYetAvailable",
    "ProtocolError",
    "ReasonBlocksError",
    "RecordError",
    "SnapshotError",
    "StaleKey",
    "StoreError",
    "SwitchedOff",
    "Unavailable",
]


class ReasonBlocksError(Exception):
    """The root: catch this to catch everything that is ours."""


class ConfigError(ReasonBlocksError, ValueError):
    """A setting is wrong. `name`, `value`, `rule` say which, what it was, and what holds."""

    def __init__(self, name: str, value: object, rule: str) -> None:
        self.name, self.value, self.rule = name, value, rule
        super().__init__(f"{name}={value!r}: {rule}")

    @classmethod
    def unknown(cls, what: str, name: object, valid: Iterable[str]) -> ConfigError:
        """An unknown key, with the nearest valid name where one is near."""
        from .text import nearest  # for whoever made a mistake

        names = sorted(valid)
        near = nearest(name, names)
        hint = f"did you mean {near!r}? " if near else ""
        return cls(what, name, f"unknown; {hint}valid: {', '.join(names)}")


class NotYetAvailable(ReasonBlocksError):
    """A setting of a part that this version does not have. `name`, `value`, `reason`."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        self.name, self.value, self.reason = name, value, reason
        super().__init__(f"{name}={value!r}: {reason}")


class AdapterMissing(ReasonBlocksError, AttributeError):
    """A method of an adapter that is not installed. `method`, `distribution`."""

    def __init__(self, method: str, distribution: str) -> None:
        self.method, self.distribution = method, distribution
        super().__init__(f"rb.{method}() needs its adapter: pip install {distribution}")


class ExtraMissing(ReasonBlocksError, ImportError):
    """Something that needs a distribution which an extra of the core brings. `what`, `distribution`, `extra`.

    With a `requirement` the message names that, in the place of the extra, as what to install.
    """

    def __init__(self, what: str, distribution: str, extra: str, requirement: str = "") -> None:
        self.what, self.distribution, self.extra = what, distribution, extra
        super().__init__(f"{what} needs {distribution}: pip install '{requirement or f'reasonblocks-core[{extra}]'}'")


class ForeignDistribution(ReasonBlocksError, ImportError):
    """Another product that overwrites our import package is installed. `distribution`."""

    def __init__(self, distribution: str) -> None:
        self.distribution = distribution
        super().__init__(
            f"the distribution {distribution!r} is installed; it is another product that overwrites "
            f"our package: pip uninstall {distribution}, then reinstall reasonblocks-core"
        )


class Unavailable(ReasonBlocksError):
    """A backend could not answer. Never raised into an agent, not even with `strict`."""

    def __init__(self, backend: str, reason: str) -> None:
        self.backend, self.reason = backend, reason
        super().__init__(f"{backend} is unavailable: {reason}")


class DeadlineExceeded(Unavailable):
    """No answer within the step's deadline. `seconds` is what was left of it."""

    def __init__(self, backend: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(backend, f"no answer within the {seconds * 1000:.0f} ms left of the step's deadline")


class SwitchedOff(Unavailable):
    """Off for a while after deadlines in a row. `seconds` until it is tried again."""

    def __init__(self, backend: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(backend, f"switched off after repeated deadlines, tried again in {seconds:.0f} s")


class BadAnswer(ReasonBlocksError):
    """What a caller, a callable or a backend gave is not what was promised. `source`, `value`, `rule`."""

    def __init__(self, source: str, value: object, rule: str) -> None:
        self.source, self.value, self.rule = source, value, rule
        super().__init__(f"{source} is {_short(value)}: {rule}")


class ProtocolError(ReasonBlocksError):
    """An adapter called the step lifecycle out of order. `reason` says what to do."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class StaleKey(ProtocolError):
    """`begin_step` got the key of a step before the last one. `key`, `last_key`."""

    def __init__(self, key: str, last_key: str | None) -> None:
        self.key, self.last_key = key, last_key
        super().__init__(
            f"key {key!r} is older than the run's last key {last_key!r}; "
            "begin a step with the last key (its decision again) or with a new one"
        )


class SnapshotError(ReasonBlocksError, ValueError):
    """A snapshot that cannot be restored. `field`, `value`, `rule`."""

    def __init__(self, field: str, value: object, rule: str) -> None:
        self.field, self.value, self.rule = field, value, rule
        super().__init__(f"snapshot field {field!r} is {_short(value)}: {rule}")


class RecordError(ReasonBlocksError, ValueError):
    """A recorded run that cannot be read. `file`, `line` (1-based, None: the whole file), `reason`."""

    def __init__(self, file: str, line: int | None, reason: str) -> None:
        self.file, self.line, self.reason = file, line, reason
        super().__init__(f"{file}:{line}: {reason}" if line else f"{file}: {reason}")


class StoreError(ReasonBlocksError):
    """A pattern store that cannot be read or written; nothing of it was changed. `store`, `reason`."""

    def __init__(self, store: str, reason: str) -> None:
        self.store, self.reason = store, reason
        super().__init__(f"the pattern store {store}: {reason}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
