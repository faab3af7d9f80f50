"""Seeded faults of the package: a copy of its sources with one of them must fail the test that is named with it.

`python -m tests.threads.mutants` prints a JSON object for each fault; with names, for those only; with `--find NAME...`
all quick tests run, and it prints the first that fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "packages" / "threads" / "src"
QUICK = tuple(f"test_{name}.py" for name in ("cells", "statement", "defects", "walks", "engine_properties"))


@dataclass(frozen=True)
class Mutant:
    """A fault: a text of a module that is replaced, and the test that must fail."""

    module: str
    old: str
    new: str
    killer: str
    also: tuple[tuple[str, str, str], ...] = ()
    """More replacements (module, old, new), where two rules forbid the same."""


WALKS, DEFECTS, MACHINE = "test_walks.py", "test_defects.py", "test_engine_properties.py::TestThreads"
END = f"{WALKS}::test_a_golden_walk_comes_to_its_end"
CELLS = "test_cells.py::test_a_trigger_that_a_phase_lacks_is_refused_and_moves_nothing"
LATE = f"{WALKS}::test_a_result_that_comes_after_the_end_is_a_late_report"
MUTANTS: Mapping[str, Mutant] = {
    "works are not written": Mutant("entry.py", "        works=works,\n", "        works=(),\n", f"{END}[W2]"),
    "works are not cancelled": Mutant(
        "entry.py", "cancel=() if before is None else _cancelled(events),", "cancel=(),", f"{END}[W30]"
    ),
    "a card is not withdrawn": Mutant(
        "entry.py", "withdraw_card=before is not None and before.phase.waits,", "withdraw_card=False,", f"{END}[W10]"
    ),
    "an answer may name a closed card": Mutant(
        "engine/submit.py", "if now is None or now.id != card:", "if False:", f"{END}[W29]"
    ),
    "a lost lease does not matter": Mutant(
        "engine/submit.py", "if found is None or found.lease != lease:", "if False:", LATE
    ),
    "the cascade ends after one level": Mutant(
        "entry.py",
        "any(child.ended is None for child in thread.children)",
        "thread.parent is None and any(child.ended is None for child in thread.children)",
        f"{DEFECTS}::test_d09_the_end_of_a_thread_reaches_all_levels_below",
    ),
    "the parent does not hear of its child's end": Mutant(
        "entry.py", "up, down = thread.parent is not None,", "up, down = False,", f"{END}[W25]"
    ),
    "an unknown execution is repeated": Mutant(
        "handlers/_execute.py",
        "if attempt.started and not idempotent:",
        "if False:",
        f"{WALKS}::test_what_may_have_acted_is_not_repeated",
        also=(
            ("entry.py", '"attempts": IDEMPOTENT_ATTEMPTS if idempotent else 1,', '"attempts": IDEMPOTENT_ATTEMPTS,'),
        ),
    ),
    "the head is skipped": Mutant(
        "stores/_writing.py",
        "changed_at, head, after.id, before.version)",
        "changed_at, _rows.head_json(before), after.id, before.version)",
        f"{DEFECTS}::test_d11_the_fold_of_a_log_is_its_head_in_every_phase",
    ),
    "the leaf's policy wins": Mutant(
        "rules.py",
        "return strictest(self.installation, *self.ancestors, thread.policy)",
        "return thread.policy",
        f"{DEFECTS}::test_d14_a_parent_that_was_tightened_makes_its_child_ask",
    ),
    "one call for three stages is booked thrice": Mutant(
        "decide/_system.py",
        '"call": None, "stored": False, "ahead": True}',
        '"call": {**(call or {}), "id": later.value}, "stored": False, "ahead": True}',
        f"{DEFECTS}::test_d22_one_call_for_three_stages_is_booked_once",
    ),
    "a call is not booked": Mutant(
        "log/folding.py",
        'calls=spent.calls + codec.count(call, "calls", 1),',
        "calls=spent.calls,",
        f"{DEFECTS}::test_d22_one_call_for_three_stages_is_booked_once",
    ),
    "the facts are dropped from the ask": Mutant(
        "handlers/_ask.py",
        "facts=thread.facts,",
        "facts=(),",
        f"{DEFECTS}::test_d23_what_a_person_says_is_in_the_next_ask[awaiting_intent_clarification-provide]",
    ),
    "the approved hash is not checked": Mutant(
        "decide/_person.py",
        "if not wanted or wanted != bound.hash:",
        "if False:",
        f"{DEFECTS}::test_d05_an_old_hash_after_an_edit_is_refused",
    ),
    "a terminal does not absorb": Mutant(
        "decide/__init__.py",
        "    if (phase, trigger) not in CELLS:\n",
        "    if (phase, trigger) not in CELLS and not phase.is_terminal:\n",
        f"{CELLS}[dismissed]",
    ),
    "a late job brings its thread back": Mutant(
        "engine/_engine.py", "            if work.kind in LATE:\n", "            if False:\n", LATE
    ),
    "a redirect asks for the present stage": Mutant(
        "decide/_person.py",
        '    draft.add("redirected", {"redirect_to": stage.value, "feedback": feedback, "keep": keep})\n'
        "    draft.move(Phase.AWAITING_INFERENCE, stage=stage)\n",
        '    draft.add("redirected", {"redirect_to": stage.value, "feedback": feedback, "keep": keep})\n'
        "    draft.move(Phase.AWAITING_INFERENCE)\n",
        f"{DEFECTS}::test_d12_a_redirect_to_the_intent_asks_for_the_intent[awaiting_confirmation]",
    ),
    "the action's flag for a review is not read": Mutant(
        "decide/_system.py",
        "if spec is None or spec.review or report.partial:",
        "if spec is None or report.partial:",
        f"{DEFECTS}::test_d03_an_action_that_asks_for_a_review_is_reviewed",
    ),
    "an unknown confidence passes": Mutant(
        "policy.py",
        "passed = number and 0.0 <= proposal.confidence <= 1.0 and proposal.confidence >= policy.floor",
        "passed = number and not proposal.confidence < policy.floor",
        "test_statement.py::test_a_confidence_that_is_no_number_never_passes[nan]",
    ),
    "an action passes without its own consent": Mutant(
        "policy.py",
        "            _auto(spec),\n",
        "",
        "test_statement.py::test_under_the_loosest_policy_only_an_action_that_says_auto_passes[plain]",
    ),
    "a parent ends with its first child": Mutant(
        "decide/_system.py", "    if all(known.values()):\n", "    if any(known.values()):\n", f"{END}[W25]"
    ),
    "a refused budget is not judged": Mutant(
        "rules.py",
        "if spent.calls >= budget.calls:",
        "if False:",
        f"{DEFECTS}::test_d01_a_refused_budget_asks_a_person",
    ),
    "words to a question become an action": Mutant(
        "decide/_person.py",
        "        draft.move(Phase.AWAITING_INFERENCE, stage=stage)\n\n\ndef _execute",
        "        draft.move(Phase.AWAITING_CONFIRMATION, stage=stage)\n\n\ndef _execute",
        f"{DEFECTS}::test_d24_words_to_a_question_are_no_action",
    ),
    "a clean-up's end is not the parent's business": Mutant(
        "decide/_system.py",
        "if id not in known or not phase.is_terminal:",
        "if id not in known or phase is Phase.DONE_CLEANUP_SUCCESSFUL:",
        f"{DEFECTS}::test_d08_each_end_of_the_last_child_releases_its_parent[done_cleanup_successful]",
    ),
    "timers are due at once": Mutant(
        "entry.py",
        'NewWork(kind="timeout", due_at=at + timer, urgency=SOON)',
        'NewWork(kind="timeout", due_at=at, urgency=SOON)',
        f"{END}[W8]",
    ),
}


def outcome(name: str, *, tests: Iterable[str] = ()) -> str:
    """Run the killer of a fault, or these tests. Return the first test that fails, "" if none does."""
    mutant = MUTANTS[name]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for path, old, new in ((mutant.module, mutant.old, mutant.new), *mutant.also):
            module = copy / "reasonblocks_threads" / path
            text = module.read_text(encoding="utf-8")
            if text.count(old) != 1:
                raise ValueError(f"the fault {name!r} fits {text.count(old)} places of {path}")
            module.write_text(text.replace(old, new), encoding="utf-8")
        paths = [os.fspath(copy), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        chosen = [f"tests/threads/{test}" for test in tests or [mutant.killer]]
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", *chosen]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        env.pop("REASONBLOCKS_WHOLE", None)
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=900, check=False)
    failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    if done.returncode != (1 if failed else 0):
        raise RuntimeError(f"the tests of {name!r} did not run: {done.stdout[-2000:]}{done.stderr[-500:]}")
    return failed[0].removeprefix("tests/threads/") if failed else ""


def main(arguments: list[str]) -> None:
    find = arguments[:1] == ["--find"]
    for name in arguments[find:] or MUTANTS:
        print(json.dumps({"fault": name, "killed by": outcome(name, tests=QUICK if find else ())}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
