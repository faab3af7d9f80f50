"""The log of a thread: its fold, and its limits."""

from __future__ import annotations

from .folding import fold as fold
from .folding import fold_all as fold_all
from .folding import redirect_words as redirect_words
from .folding import upcast as upcast
