"""The log of a thread: its fold, its limits, and the stored forms of heads and events."""

from __future__ import annotations

from ._forms import upcast as upcast
from ._head import event_json as event_json
from ._head import event_of as event_of
from ._head import head_json as head_json
from ._head import head_of as head_of
from ._head import thread_id_of as thread_id_of
from .folding import FOLD_VERSION as FOLD_VERSION
from .folding import fold as fold
from .folding import fold_all as fold_all
from .folding import redirect_words as redirect_words
from .plain import Malformed as Malformed
from .plain import blobs_of as blobs_of
from .plain import cause_json as cause_json
from .plain import cause_of as cause_of
from .plain import evidence_json as evidence_json
from .plain import evidence_of as evidence_of
from .plain import proposal_json as proposal_json
from .plain import proposal_of as proposal_of
from .plain import report_json as report_json
from .plain import report_of as report_of
