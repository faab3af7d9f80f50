"""Connects threads to the core: a sink that opens threads about runs, and a mailbox with the letters to them."""

from __future__ import annotations

from ._letters import LetterBox as LetterBox
from ._sink import RunSink as RunSink
