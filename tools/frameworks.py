"""Writes docs/frameworks.md, the results of the conformance suite and the matrix, from their reports.

`./dev frameworks` runs it on the reports of the last `./dev matrix`; where those lack an adapter, on those of
`./dev tests`. With the argument `--reports DIR`: on the reports of that folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from cells import ADAPTERS, CELLS, PYTHONS, Cell

from reasonblocks_testing import ConformanceSuite

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/frameworks.md"
REPORTS = ROOT / ".nox/reports"
LOOP = "a loop of your own"
NOT_RUN = "not run"
PASSED = "passed"
SCENARIOS = sorted(name for name in dir(ConformanceSuite) if name.startswith("test_"))
GOLDEN = "test_golden_runs_decide_as_written"
"""Its cases are named by the golden run, then by the mode."""


# --- reports


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test that ran. `said` is "passed", "failed", or the reason that was declared for it."""

    suite: str
    name: str
    mode: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of one session: its cases, the versions that it installed, and its duration."""

    got: str
    seconds: float
    cases: Sequence[Case]
    skipped: int
    xfailed: int
    failed: int

    @property
    def passed(self) -> int:
        return len(self.cases) - self.skipped - self.xfailed - self.failed


def report_of(name: str, reports: Path) -> Report | None:
    """Return the report of the session, or None if it left none."""
    path = reports / f"{name}.xml"
    if not path.exists():
        return None
    suite = next(ElementTree.parse(path).getroot().iter("testsuite"))
    kinds = [kind_of(case) for case in suite.iter("testcase")]
    return Report(
        got=str(suite.get("name")),
        seconds=float(suite.get("time", 0)),
        cases=[case_of(case) for case in suite.iter("testcase")],
        skipped=kinds.count("pytest.skip"),
        xfailed=kinds.count("pytest.xfail"),
        failed=kinds.count("failed"),
    )


def kind_of(case: ElementTree.Element) -> str:
    skipped = case.find("skipped")
    if skipped is not None:
        return str(skipped.get("type"))
    return "failed" if case.find("failure") is not None or case.find("error") is not None else PASSED


def case_of(case: ElementTree.Element) -> Case:
    name, _, parameters = str(case.get("name")).rstrip("]").partition("[")
    skipped, kind = case.find("skipped"), kind_of(case)
    return Case(
        suite=str(case.get("classname")).rpartition(".")[2],
        name=name,
        mode=parameters.partition("-")[2] if name == GOLDEN else parameters,
        said=kind if skipped is None else f"{WORDS.get(kind, kind)}: {skipped.get('message')}",
    )


WORDS = {"pytest.xfail": "cannot", "pytest.skip": "not asked"}


# --- the table of scenarios


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One framework, by one conformance suite of its tests: a suite has the modes of one harness."""

    framework: str
    cases: Sequence[Case] = ()

    @property
    def modes(self) -> list[str]:
        return list(dict.fromkeys(case.mode for case in self.cases if case.mode))

    @property
    def head(self) -> str:
        return "<br>".join([self.framework, *(f"`{mode}`" for mode in self.modes)])

    def cell(self, scenario: str) -> str:
        """Return the result if it is the same in all modes, else the results mode by mode."""
        found = {case.mode: case.said for case in self.cases if case.name == scenario}
        for case in self.cases:  # of several golden runs the one that did not pass
            if case.name == scenario and case.said != PASSED:
                found[case.mode] = case.said
        if not found:
            return NOT_RUN
        if len({*found.values()}) == 1:
            return next(iter(found.values()))
        return "; ".join(f"`{mode}`: {said}" for mode, said in found.items())


def columns(reports: Path) -> Iterator[Column]:
    newest = {cell.part: cell.name for cell in CELLS if cell.whole and cell.versions == "newest"}
    yield from columns_of(LOOP, [newest["core"], "core"], reports)
    for name, adapter in ADAPTERS.items():
        yield from columns_of(adapter["distribution"], [newest[name], f"adapters({name})"], reports)


def columns_of(framework: str, names: Iterable[str], reports: Path) -> Iterator[Column]:
    report = next((found for name in names if (found := report_of(name, reports)) is not None), None)
    cases = [case for case in report.cases if case.name in SCENARIOS] if report is not None else []
    for suite in dict.fromkeys(case.suite for case in cases) or [None]:
        yield Column(framework=framework, cases=[case for case in cases if case.suite == suite])


def sentence(scenario: str) -> str:
    return scenario.removeprefix("test_").replace("_", " ")


# --- the table of versions


def cells() -> list[Cell]:
    """Return the cells of the core, then those of the adapters on each Python."""
    parts = ["core", *ADAPTERS]
    found = [cell for cell in CELLS if cell.part in parts]
    places = {cell: (PYTHONS.index(cell.python), parts.index(cell.part), cell.versions != "oldest") for cell in found}
    return sorted(found, key=lambda cell: (cell.part in ADAPTERS, *places[cell]))


def framework_of(cell: Cell) -> str:
    return f"{cell.versions} {ADAPTERS[cell.part]['distribution']}" if cell.part in ADAPTERS else "none: the core"


def cell_row(cell: Cell, reports: Path) -> list[str]:
    tests = "all" if cell.whole else "shorter"
    head = [cell.python, framework_of(cell), tests]
    report = report_of(cell.name, reports)
    if report is None:
        return [*head, NOT_RUN, "", "", "", "", ""]
    counts = (report.passed, report.failed, report.skipped, report.xfailed)
    return [*head, report.got, *map(str, counts), f"{report.seconds:.0f}"]


# --- the page

HEAD = """# Frameworks

<!-- written by `./dev matrix`, then `./dev frameworks` (tools/frameworks.py): change it there -->

## Scenarios

Every adapter runs the same scenarios on real agents of its framework, in each of its modes (listed below its name). \
"cannot" is declared in the adapter's tests with its reason, and fails the build as soon as it is no longer true. \
"not asked" means that the scenario does not apply to the framework.
"""
EVERYWHERE = "\nThese passed in every framework and mode: "
MATRIX = """
## Versions

The core is tested on every Python, and each adapter on the oldest and the newest version of Python and of its \
framework. Nothing is pinned: "got" is the version that was resolved that day. "shorter" tests are those of every \
commit: fewer examples, modes and sessions; each framework has all tests on one Python.
"""


def page(reports: Path) -> str:
    found = list(columns(reports))
    scenarios = [[sentence(name), *(column.cell(name) for column in found)] for name in SCENARIOS]
    differing = [row for row in scenarios if {*row[1:]} != {PASSED}]
    everywhere = f"{EVERYWHERE}{'; '.join(row[0] for row in scenarios if row not in differing)}."
    matrix = [cell_row(cell, reports) for cell in cells()]
    heads = ["Python", "framework", "tests", "got", "passed", "failed", "not asked", "cannot", "seconds"]
    by_framework = table(["scenario", *(column.head for column in found)], differing)
    return "\n".join([HEAD, *by_framework, everywhere, MATRIX, *table(heads, matrix), ""])


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield line(heads)
    yield line(["---"] * len(heads))
    yield from map(line, rows)


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=Path, default=REPORTS, help="the folder of the reports")
    PAGE.write_text(page(parser.parse_args().reports), encoding="utf-8")


if __name__ == "__main__":
    main()
