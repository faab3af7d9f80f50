"""Counts what was compared, and says so at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pytest


@dataclass(slots=True)
class Tally:
    """Entries compared, differences found, and differences that are declared, by who decided."""

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    declared: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, who: str, entries: int, differences: int, declared: Mapping[str, int] | None = None) -> None:
        """`declared` are counts by what is said of them."""
        before = self.counts.get(who, (0, 0))
        self.counts[who] = (before[0] + entries, before[1] + differences)
        for said, count in (declared or {}).items():
            self.declared[who, said] = self.declared.get((who, said), 0) + count

    @property
    def lines(self) -> list[str]:
        return [
            *(f"{who}: {entries} entries, {wrong} differences" for who, (entries, wrong) in self.counts.items()),
            *(f"{who}: {count} declared differences of {said}" for (who, said), count in self.declared.items()),
        ]


_TALLY = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config, record_testsuite_property: Callable[[str, object], None]) -> Iterator[Tally]:
    """Shown at the end, and left in the report of the run under `compared with the core`."""
    counted = pytestconfig.stash.setdefault(_TALLY, Tally())
    yield counted
    for line in counted.lines:
        record_testsuite_property("compared with the core", line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _TALLY in config.stash:
        terminalreporter.section("compared with the core")
        for line in config.stash[_TALLY].lines:
            terminalreporter.write_line(line)
