"""The forms of events: an older one becomes the newest at reading, a newer one cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from ..values import FORM, KINDS, ThreadEvent

Data: TypeAlias = Mapping[str, Any]
Upcaster: TypeAlias = Callable[[Data], Data]

UPCASTERS: Mapping[tuple[str, int], Upcaster] = MappingProxyType({})
"""By kind and form, the function that turns this form's data into the next form's; without one they are equal."""


def upcast(
    event: ThreadEvent, upcasters: Mapping[tuple[str, int], Upcaster] = UPCASTERS, newest: int = FORM
) -> ThreadEvent:
    """Return the event in the newest form. Raises ValueError for an unknown kind or a newer form."""
    if event.kind not in KINDS:
        raise ValueError(f"the kind {event.kind[:64]!r} of event {event.seq} is unknown to this version")
    if not 1 <= event.form <= newest:
        raise ValueError(f"event {event.seq} has the form {event.form}; this version reads 1 to {newest}")
    data: Data = event.data
    for form in range(event.form, newest):
        data = upcasters.get((event.kind, form), _unchanged)(data)
    return event if event.form == newest else replace(event, form=newest, data=data)


def _unchanged(data: Data) -> Data:
    return data
