"""A store of findings that fails: the tests of the memory tools share it, each in its own environment."""

from __future__ import annotations

from collections.abc import Sequence

from reasonblocks.types import Codebase, CodebaseSummary, Finding, RecalledFinding

__all__ = ["FailingFindings"]


class FailingFindings:
    """A store in which every call raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def put(self, codebase: Codebase, findings: Sequence[Finding]) -> tuple[str, ...]:
        raise self.error

    def search(
        self, codebase: Codebase, query: str, *, top_k: int, score_threshold: float
    ) -> tuple[RecalledFinding, ...]:
        raise self.error

    def page(self, codebase: Codebase, *, after: str = "", limit: int = 100) -> tuple[Finding, ...]:
        raise self.error

    def remove(self, codebase: Codebase, *, finding_ids: Sequence[str] = (), file_paths: Sequence[str] = ()) -> int:
        raise self.error

    def clear(self, codebase: Codebase) -> int:
        raise self.error

    def codebases(self, org_id: str) -> tuple[CodebaseSummary, ...]:
        raise self.error

    def close(self) -> None: ...
