"""Learns lessons from finished runs: where failed runs got stuck, and what successful runs did instead."""

from __future__ import annotations

from ._digest import Gathered, RunDigest, digest_of
from ._distil import Distil, Evidence, distil
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
