"""The engine: the one writer of logs, and the doing of works."""

from __future__ import annotations

from ._doctor import Finding as Finding
from ._engine import Engine as Engine
from ._engine import Handler as Handler
from ._submit import Effects as Effects
from ._submit import Submitted as Submitted
from ._worker import Worker as Worker
