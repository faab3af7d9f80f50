"""The engine: the one writer of logs, and the doing of works."""

from __future__ import annotations

from ._engine import Engine as Engine
from ._engine import Handler as Handler
from ._worker import Worker as Worker
from .doctor import Finding as Finding
from .submit import Effects as Effects
from .submit import Submitted as Submitted
