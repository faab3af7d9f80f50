"""The errors of this library, all derived from `ReasonBlocksError`.

Each has the data of its message as attributes, so that callers never parse text.
"""

from __future__ import annotations

from collections.abc import Iterable

from .util.extras import EXTRAS, folder_of, pip_install

__all__ = [
    "AdapterMissing",
    "BadAnswer",
    "ConfigError",
    "DeadlineExceeded",
    "EventError",
    "ExtraMissing",
    "ForeignDistribution",
    "ProtocolError",
    "ReasonBlocksError",
    "RecordError",
    "Refused",
    "RunStopped",
    "SnapshotError",
    "StaleKey",
    "StoreError",
    "StoreFull",
    "SwitchedOff",
    "Unavailable",
    "UnknownKeyword",
]


VALUE_CHARS = 500
"""The characters of an invalid setting that its error shows: enough for a whole path."""


class ReasonBlocksError(Exception):
    """Base of all errors of this library."""


class ConfigError(ReasonBlocksError, ValueError):
    """An invalid setting: its `name`, its `value`, and the `rule` that it breaks."""

    def __init__(self, name: str, value: object, rule: str) -> None:
        self.name, self.value, self.rule = name, value, rule
        super().__init__(f"{name}={_short(value, VALUE_CHARS)}: {rule}")

    @classmethod
    def unknown(cls, what: str, name: object, valid: Iterable[str]) -> ConfigError:
        """Return the error for an unknown key, with the nearest valid name if one is near."""
        from .util.text import nearest  # for errors only

        names = sorted(valid)
        near = nearest(name, names)
        hint = f"did you mean {near!r}? " if near else ""
        return cls(what, name, f"unknown; {hint}valid: {', '.join(names)}")


class UnknownKeyword(ConfigError, TypeError):
    """A keyword that a function does not take; `value` is its name. Also a `TypeError`, like Python's own error."""


class AdapterMissing(ReasonBlocksError, AttributeError):
    """A method of `rb` whose adapter is not installed. `method`, `distribution`, `folder` (in a clone)."""

    def __init__(self, method: str, distribution: str) -> None:
        self.method, self.distribution = method, distribution
        self.folder = folder_of(distribution)
        super().__init__(
            f"rb.{method}() needs {distribution}, which is on no package index yet; "
            f"in a clone of ReasonBlocks: pip install ./packages/core {self.folder}"
        )


class ExtraMissing(ReasonBlocksError, ImportError):
    """A feature needs a distribution of an extra. `what`, `distribution`, `extra`, `requirements` (of the extra).

    The requirements default to those of the core's extra; an adapter passes those of its own.
    """

    def __init__(self, what: str, distribution: str, extra: str, requirements: tuple[str, ...] | None = None) -> None:
        self.what, self.distribution, self.extra = what, distribution, extra
        self.requirements = EXTRAS[extra] if requirements is None else requirements
        super().__init__(f"{what} needs {distribution}: {pip_install(self.requirements)}")


class ForeignDistribution(ReasonBlocksError, ImportError):
    """Another product, which overwrites our import package, is installed. `distribution`, `path` (of its metadata)."""

    def __init__(self, distribution: str, path: str) -> None:
        self.distribution, self.path = distribution, path
        super().__init__(
            f"the distribution {distribution!r} is installed ({path}); it is another product that overwrites "
            f"our package: pip uninstall {distribution}, then in a clone of ReasonBlocks: "
            "pip install --force-reinstall --no-deps ./packages/core"
        )


class Unavailable(ReasonBlocksError):
    """A backend could not answer. Never raised into an agent, not even with `strict`.

    `retry_after` is the number of seconds after which the backend may be called again, None if it is unknown.
    """

    def __init__(self, backend: str, reason: str, *, retry_after: float | None = None) -> None:
        self.backend, self.reason, self.retry_after = backend, reason, retry_after
        super().__init__(f"{backend} is unavailable: {reason}")


class DeadlineExceeded(Unavailable):
    """A backend did not answer within the step's deadline, of which `seconds` were left."""

    def __init__(self, backend: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(backend, f"no answer within the {seconds * 1000:.0f} ms left of the step's deadline")


class SwitchedOff(Unavailable):
    """A backend is switched off after repeated failures or deadlines, for `seconds` more."""

    def __init__(self, backend: str, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(backend, f"switched off after repeated failures, tried again in {seconds:.0f} s")


class Refused(ReasonBlocksError):
    """A server refused the key, or events for good. `server`, `reason`, `events`, `logged`.

    `events` is the number of refused events, counted from the first of the batch; None for all of them. `logged` is
    True if the log has a line about it already.
    """

    def __init__(self, server: str, reason: str, *, events: int | None = None, logged: bool = False) -> None:
        self.server, self.reason, self.events, self.logged = server, reason, events, logged
        super().__init__(f"{server} refused: {reason}")


class BadAnswer(ReasonBlocksError):
    """A caller, a callable or a backend returned an invalid value. `source`, `value`, `rule`."""

    def __init__(self, source: str, value: object, rule: str) -> None:
        self.source, self.value, self.rule = source, value, rule
        super().__init__(f"{source} is {_short(value)}: {rule}")


class ProtocolError(ReasonBlocksError):
    """An adapter called the methods of a session out of order. `reason` explains what to do."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class RunStopped(ReasonBlocksError):
    """`stop_when` ended the run before its next model call. `reason`, `run_id`."""

    def __init__(self, reason: str, run_id: str) -> None:
        self.reason, self.run_id = reason, run_id
        super().__init__(f"run {run_id!r} was stopped: {reason}")

    def __reduce__(self) -> tuple[type[RunStopped], tuple[str, str]]:
        return RunStopped, (self.reason, self.run_id)


class StaleKey(ProtocolError):
    """`begin_step` received the key of a step before the last one. `key`, `last_key`."""

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


class EventError(ReasonBlocksError, ValueError):
    """A JSON object that is no event. `field`, `value`, `rule`."""

    def __init__(self, field: str, value: object, rule: str) -> None:
        self.field, self.value, self.rule = field, value, rule
        super().__init__(f"event field {field!r} is {_short(value)}: {rule}")


class RecordError(ReasonBlocksError, ValueError):
    """A recorded run that cannot be read. `file`, `line` (from 1; None for the whole file), `reason`."""

    def __init__(self, file: str, line: int | None, reason: str) -> None:
        self.file, self.line, self.reason = file, line, reason
        super().__init__(f"{file}:{line}: {reason}" if line else f"{file}: {reason}")


class StoreError(ReasonBlocksError):
    """A store of patterns or findings that cannot be read or written, and is unchanged. `store`, `reason`."""

    def __init__(self, store: str, reason: str) -> None:
        self.store, self.reason = store, reason
        super().__init__(f"the store {store}: {reason}")


class StoreFull(StoreError):
    """A codebase that would have more findings than its store keeps. Nothing was stored. `store`, `reason`."""


def _short(value: object, most: int = 120) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - an int of more digits than Python prints, lists in lists without end
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 3]}..."
