"""Lessons from finished runs: what happened where a run got stuck, and what a run that succeeded did instead."""

from __future__ import annotations

from ._digest import RunDigest, digest_of
from ._distil import distil
from ._evidence import Distil, Evidence
from ._gather import Gathered
from ._learn import learn, proposals
from ._proposal import Proposal, read_proposals, together, write_proposals

__all__ = [
    "Distil",
    "Evidence",
    "Gathered",
    "Proposal",
    "RunDigest",
    "digest_of",
    "distil",
    "learn",
    "proposals",
    "read_proposals",
    "together",
    "write_proposals",
]
