"""Staleness of findings after a change set: those that `stale(root)` reports, against what `git diff` says has changed.

A clone is checked out at an older commit, a finding about each of its files is stored, and the clone moves to the newer
commit. For this repository, the findings and questions of `_memory/data/reasonblocks.jsonl` are stored and asked too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from reasonblocks import CodebaseMemory
from reasonblocks.memory import Finding

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "_memory" / "data" / "reasonblocks.jsonl"
BACK = (5, 50, 300)
"""Commits between the older and the newer one of each range."""
REGULAR = ("100644", "100755")
"""Modes of regular files in Git's trees."""
TOP_K = 5
COLUMNS = {
    "range": 24, "files": 7, "changed": 9, "deleted": 9, "renamed": 9, "reported": 10, "missed": 8, "wrong": 7,
    "findings": 10, "stale": 7, "stale_s": 9, "invalidate_s": 14, "recall_before": 15, "recall_after": 14,
    "stale_recalled": 16,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Findings that persons wrote, by their names, and questions with the names of the findings that answer them."""

    findings: Mapping[str, Finding] = field(default_factory=dict)
    asked: Sequence[tuple[str, frozenset[str]]] = ()


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"git {arguments[0]} failed in {folder}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def regular_files(clone: Path, commit: str) -> list[str]:
    entries = [entry.split("\t", 1) for entry in git(clone, "ls-tree", "-rz", commit).split("\0") if entry]
    return [path for told, path in entries if told.split()[0] in REGULAR]


def changes(clone: Path, older: str, newer: str) -> dict[str, set[str]]:
    """Return the paths of the older commit that a diff lists as changed, deleted or renamed."""
    parts = iter(git(clone, "diff", "--name-status", "-z", "-M", older, newer).split("\0")[:-1])
    found: dict[str, set[str]] = {"changed": set(), "deleted": set(), "renamed": set()}
    for status in parts:
        path = next(parts)
        if status[0] in "RC":
            next(parts)  # the new path
        kind = {"M": "changed", "T": "changed", "D": "deleted", "R": "renamed"}.get(status[0])
        if kind == "changed" and not differs(clone, older, newer, path):
            continue  # only the mode
        if kind is not None:
            found[kind].add(path)
    return found


def differs(clone: Path, older: str, newer: str, path: str) -> bool:
    return git(clone, "rev-parse", f"{older}:{path}") != git(clone, "rev-parse", f"{newer}:{path}")


def questions(there: set[str]) -> Questions:
    """Return the written findings about files that there are, and the questions that only these answer."""
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()] if DATA.exists() else []
    findings = {
        row["finding"]: Finding(content=row["content"], file_path=row["file_path"], finding_type=row["finding_type"])
        for row in rows
        if row.get("file_path") in there
    }
    asked = [(row["question"], frozenset(row["answers"])) for row in rows if "question" in row]
    return Questions(findings=findings, asked=[one for one in asked if one[1] <= {*findings}])


def recalled(memory: CodebaseMemory, asked: Sequence[tuple[str, frozenset[str]]], ids: Mapping[str, str]) -> int:
    """Return how many questions find one of their answers among the first five."""
    answers = [{ids[name] for name in names} for _, names in asked]
    found = [{one.finding_id for one in memory.recall(question, TOP_K)} for question, _ in asked]
    return sum(1 for wanted, given in zip(answers, found, strict=True) if wanted & given)


def measure(repository: Path, older: str, newer: str, folder: Path, *, own: bool) -> dict[str, object]:
    clone = folder / "clone"
    git(repository, "clone", "--quiet", "--shared", "--no-checkout", str(repository), str(clone))
    git(clone, "checkout", "--quiet", "--detach", older)
    files = regular_files(clone, older)
    given = questions({*files} if own else set())
    with CodebaseMemory("benchmark", store=folder / "findings.db", root=clone, base_url="") as memory:
        begun = time.perf_counter()
        memory.store_many([Finding(content=f"Notes about {path}.", file_path=path) for path in files])
        ids = dict(zip(given.findings, memory.store_many(given.findings.values()), strict=True))
        store_s = time.perf_counter() - begun
        before = recalled(memory, given.asked, ids)
        git(clone, "checkout", "--quiet", "--detach", newer)
        expected = changes(clone, older, newer)
        gone = set[str]().union(*expected.values())
        alive = [one for one in given.asked if not any(given.findings[name].file_path in gone for name in one[1])]
        dead = [one for one in given.asked if all(given.findings[name].file_path in gone for name in one[1])]
        begun = time.perf_counter()
        stale = memory.stale()
        stale_s = time.perf_counter() - begun
        reported = {finding.file_path for finding in stale}
        stale_recalled = recalled(memory, dead, ids)
        begun = time.perf_counter()
        removed = memory.invalidate_changed()
        invalidate_s = time.perf_counter() - begun
        after = recalled(memory, alive, ids)
        left = {finding.file_path for finding in memory.list_all()}
    return {
        "range": f"{older[:9]}..{newer[:9]}",
        "files": len(files),
        **{kind: len(paths) for kind, paths in expected.items()},
        "reported": len(reported),
        "missed": len(gone & {*files} - reported) + len(left & gone),
        "wrong": len(reported - gone),
        "findings": len(files) + len(given.findings),
        "stale": removed,
        "store_s": round(store_s, 2),
        "stale_s": round(stale_s, 3),
        "invalidate_s": round(invalidate_s, 3),
        "recall_before": f"{before}/{len(given.asked)}",
        "recall_after": f"{after}/{len(alive)}",
        "stale_recalled": f"{stale_recalled}/{len(dead)}",
    }


def ranges(repository: Path, newer: str, back: Sequence[int], older: str | None) -> Iterator[tuple[str, str]]:
    newest = git(repository, "rev-parse", newer).strip()
    if older is not None:
        yield git(repository, "rev-parse", older).strip(), newest
        return
    history = git(repository, "rev-list", newest).split()
    if len(history) <= min(back):
        sys.exit(f"{repository} has {len(history)} commits of history: this needs more than {min(back)}")
    yield from [(history[number], newest) for number in back if number < len(history)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--repository", type=Path, default=ROOT, help="a clone with its history (default: this one)")
    parser.add_argument("--newer", default="HEAD", help="the newer commit (default HEAD)")
    parser.add_argument("--older", help="the older commit, in place of --back")
    parser.add_argument("--back", type=int, nargs="+", default=BACK, metavar="N", help=f"commits back (default {BACK})")
    given = parser.parse_args()
    if not given.json:
        print("".join(f"{name:>{width}}" for name, width in COLUMNS.items()))
    for older, newer in ranges(given.repository, given.newer, given.back, given.older):
        with TemporaryDirectory() as folder:
            row = measure(given.repository, older, newer, Path(folder), own=given.repository.resolve() == ROOT)
        told = json.dumps(row) if given.json else "".join(f"{row[name]!s:>{width}}" for name, width in COLUMNS.items())
        print(told, flush=True)


if __name__ == "__main__":
    main()
