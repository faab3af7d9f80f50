"""The log of a thread: its fold, its limits, and the stored forms of heads and events."""

from __future__ import annotations

from ._fold import FOLD_VERSION as FOLD_VERSION
from ._fold import fold as fold
from ._fold import fold_all as fold_all
from ._fold import redirect_words as redirect_words
from ._forms import upcast as upcast
from ._head import event_json as event_json
from ._head import event_of as event_of
from ._head import head_json as head_json
from ._head import head_of as head_of
from ._head import thread_id_of as thread_id_of
from ._plain import Malformed as Malformed
from ._plain import blobs_of as blobs_of
from ._plain import cause_json as cause_json
from ._plain import cause_of as cause_of
from ._plain import evidence_json as evidence_json
from ._plain import evidence_of as evidence_of
from ._plain import proposal_json as proposal_json
from ._plain import proposal_of as proposal_of
from ._plain import report_json as report_json
from ._plain import report_of as report_of
