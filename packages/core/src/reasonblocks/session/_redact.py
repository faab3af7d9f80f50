"""The caller's `redact` over every text of an event that a person, a model or a tool wrote."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..events import Event, RunFinish, RunStart, StepEvent
from ..exceptions import BadAnswer
from ..types import JSON, evolve
from ._guard import Faults, tamed

Redact = Callable[[str], str]
UNREDACTED = "[redaction failed]"
TEXTS = ("thought", "action_input", "observation")
SAID = ("error", "doubts")
"""Metadata fields that are redacted as texts."""
LISTS = ("injections", "intervention_texts")


class Redactor:
    """Without a `redact` events pass as they are; where it fails, nothing of the text is left."""

    __slots__ = ("_faults", "_redact")

    def __init__(self, redact: Redact | None, faults: Faults) -> None:
        self._redact, self._faults = redact, faults

    def redacted(self, event: Event) -> Event:
        if self._redact is None:
            return event
        if isinstance(event, RunStart):
            return self._start(event)
        return self._step(event) if isinstance(event, StepEvent) else self._finish(event)

    def _start(self, event: RunStart) -> RunStart:
        metadata = {key: self._within(value) for key, value in event.run.metadata.items()}
        return evolve(event, run=evolve(event.run, task=self._text(event.run.task), metadata=metadata))

    def _step(self, event: StepEvent) -> StepEvent:
        hidden: dict[str, Any] = {name: self._text(getattr(event, name)) for name in TEXTS}
        hidden |= {name: tuple(map(self._text, getattr(event, name))) for name in LISTS}
        if told := {name: self._within(event.metadata[name]) for name in SAID if name in event.metadata}:
            hidden["metadata"] = {**event.metadata, **told}
        return evolve(event, **hidden)

    def _finish(self, event: RunFinish) -> RunFinish:
        outcome = event.outcome if event.outcome == "success" else self._text(event.outcome)
        doubts = tuple([evolve(one, text=self._text(one.text)) for one in event.doubts])
        return evolve(event, outcome=outcome, doubts=doubts)

    def _within(self, value: JSON) -> JSON:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {key: self._within(item) for key, item in value.items()}
        return [self._within(item) for item in value] if isinstance(value, Sequence) else value

    def _text(self, text: str) -> str:
        with self._faults.guard("redact"), tamed("redact"):
            shown: object = self._redact(text) if self._redact is not None else text
            if isinstance(shown, str):
                return shown
            raise BadAnswer("redact", shown, "must be text")
        return UNREDACTED


class Told:
    """An event for several sinks: it is redacted once, in the thread of the first sink that takes it.

    `lock` is held meanwhile, so that one thread at a time calls `redact`.
    """

    __slots__ = ("_lock", "_redactor", "_shown", "event")

    def __init__(self, event: Event, redactor: Redactor, lock: threading.Lock) -> None:
        self.event, self._redactor, self._lock = event, redactor, lock
        self._shown: Event | None = None

    def shown(self) -> Event:
        with self._lock:
            if self._shown is None:
                self._shown = self._redactor.redacted(self.event)
            return self._shown
