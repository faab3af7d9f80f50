"""Draws docs/dashboard.png, the dashboard's list of runs: `python tools/server_screenshots.py`.

With a folder as its argument, it draws every page there: wide, dark and narrow.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(ROOT / "benchmarks"), str(ROOT / "tools")]

from _browser import browser  # noqa: E402
from broken_repo import write_to  # noqa: E402
from scripted_model import ScriptedModel  # noqa: E402
from two_runs import TASK, messages_of  # noqa: E402

from reasonblocks import JsonlSink, ReasonBlocks  # noqa: E402
from reasonblocks.events import RunFinish, RunStart, StepEvent  # noqa: E402
from reasonblocks.types import Codebase, Finding, RunInfo  # noqa: E402
from reasonblocks_server.values import Scope  # noqa: E402
from reasonblocks_threads import Actor, Cause, Evidence, Policy, Proposal, Threads  # noqa: E402
from reasonblocks_workbench.traces import RunLog, read_logs  # noqa: E402
from tests.server.running import ORG, Running, running  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURE = ROOT / "docs" / "dashboard.png"
WORK = (
    ("bugfixer", "Fix the failing tests.", "claude-sonnet-5"),
    ("bugfixer", "The nightly job fails on the first of a month. Find out why, and fix it.", "claude-sonnet-5"),
    ("migrator", "Move the orders service from v1 of the billing API to v2.", "gpt-5.2"),
    ("reviewer", "Review pull request 1184 and run its tests.", "claude-sonnet-5"),
    ("bugfixer", "Customers see yesterday's prices after a deployment.", "claude-sonnet-5"),
    ("docs-writer", "Bring the page on rate limits up to date with the code.", "gpt-5.2-mini"),
    ("migrator", "Replace moment.js in the web client.", "gpt-5.2"),
    ("bugfixer", "Upload of a CSV with 40,000 rows times out.", "claude-sonnet-5"),
    ("reviewer", "Review pull request 1179 and run its tests.", "claude-sonnet-5"),
    ("bugfixer", "test_refund is flaky: make it deterministic.", "claude-sonnet-5"),
    ("docs-writer", "Write the changelog of release 4.12.", "gpt-5.2-mini"),
    ("migrator", "Drop support for Python 3.9.", "gpt-5.2"),
)
"""Agents, their tasks and their models."""
NOTED, NOTE = "bugfixer-4211", "Run the tests of shop/ only: the others need a database."
SAYS = "An operator of this run says: "
OUTCOMES = ("success", "success", "success", "failure: RuntimeError", "success", "stopped: stalled")


def demo_log() -> RunLog:
    """Run the demo's agent steered, and return its events."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["REASONBLOCKS_HOME"] = folder
        log, repository = Path(folder) / "runs.jsonl", Path(folder) / "repository"
        repository.mkdir()
        with (
            ReasonBlocks(sinks=[JsonlSink(log)]) as rb,
            rb.middleware(run_id="fix-42", agent_name="bugfixer", task=TASK) as steering,
        ):
            messages_of(ScriptedModel(), write_to(repository.resolve()), steering)
        (run,) = (one for one in read_logs(str(log)) if isinstance(one, RunLog))
        return run


def moved(log: RunLog, info: RunInfo, started: float, seconds: float, steps: int, outcome: str | None) -> list[Any]:
    """Return the first steps of a run's events as those of another run that began at another time."""
    random, each = Random(info.run_id), seconds / max(1, steps)
    shown = [varied(step, info, started + each * at, random) for at, step in enumerate(log.steps[:steps])]
    if info.run_id == NOTED:
        shown[7] = replace(shown[7], injection_sources=("OperatorInjection",), intervention_texts=(f"{SAYS}{NOTE}",))
    events: list[Any] = [RunStart(run=info, timestamp=started), *shown]
    if outcome is not None:
        events.append(RunFinish(run_id=info.run_id, outcome=outcome, timestamp=started + seconds))
    return [event.as_dict() for event in events]


def varied(step: StepEvent, info: RunInfo, at: float, random: Random) -> StepEvent:
    metadata, tokens = dict(step.metadata), random.randrange(900, 5_200)
    if isinstance(level := metadata.get("difficulty"), float) and info.run_id != "fix-42":
        metadata["difficulty"] = min(1.0, max(0.0, level * random.uniform(0.75, 1.15) + random.uniform(-0.05, 0.1)))
    metadata["latency_ms"] = random.uniform(1_400, 6_200)
    return replace(
        step, run_id=info.run_id, timestamp=at, metadata=metadata, step_model=info.model, tokens=tokens,
        input_tokens=tokens - tokens // 9, output_tokens=tokens // 9,
    )  # fmt: skip


def seed(server: Running, log: RunLog, now: float) -> None:
    """Fill a server with the demo's run, some that are live, and many that have finished."""
    storage, random = server.server.storage, Random(7)
    for at, (agent, task, model) in enumerate(WORK * 3):
        run_id = "fix-42" if at == 5 else f"{agent}-{4_211 - at}"
        live = at in (0, 2, 3)
        steps = (9, 15, 12, 4)[at] if at < 4 else 15 if at == 5 else random.randrange(5, 16)
        started = now - (40, 900, 75, 18)[at] if at < 4 else now - 900 - 700 * at
        info = RunInfo(
            run_id=run_id, agent_name="bugfixer" if at == 5 else agent, task=TASK if at == 5 else task, model=model,
            framework="langchain", parent_run_id="fix-42" if at == 8 else None,
        )  # fmt: skip
        seconds = (now - started - 2) if live else 4.0 * steps
        events = moved(log, info, started, seconds, steps, None if live else "success" if at == 5 else OUTCOMES[at % 6])
        storage.runs.ingest(ORG, events, now=now if live else started + seconds)
        if live:
            storage.runs.takes_notes(ORG, run_id, now)
    experiment(server, log, now)
    note = storage.notes.add(ORG, NOTED, NOTE, key_id="demo", now=now - 30, expires=now + 800)
    storage.notes.told(ORG, NOTED, [note.note_id], 7, now - 12)
    storage.notes.add(ORG, NOTED, "Leave prices.py alone: another branch changes it.",
                      key_id="demo", now=now - 3, expires=now + 897)  # fmt: skip
    others(server, now)
    findings(server, now)


def experiment(server: Running, log: RunLog, now: float) -> None:
    """Add the runs of an experiment, of which steered ones succeed more often."""
    random, events = Random(11), list[Any]()
    for at in range(140):
        arm = "on" if random.random() < 0.5 else "off"
        succeeded = random.random() < (0.74 if arm == "on" else 0.48)
        info = RunInfo(
            run_id=f"ci-{at}", agent_name="ci-fixer", task="Fix the build.", model="gpt-5.2",
            mode="steer" if arm == "on" else "observe",
            metadata={"experiment_id": "steering-in-ci", "arm": arm, "assignment_unit": f"repo-{at}",
                      "on_fraction": 0.5},
        )  # fmt: skip
        started = now - 5 * 86_400 + 900 * at
        outcome = "success" if succeeded else "failure: BuildError"
        events += moved(log, info, started, 60.0, random.randrange(4, 12), outcome)
    for at in range(0, len(events), 500):
        server.server.storage.runs.ingest(ORG, events[at : at + 500], now=now - 86_400)


def others(server: Running, now: float) -> None:
    """Add patterns, keys, agents and changes."""
    storage = server.server.storage
    server.server.patterns.add(ORG, [
        {"id": "retry-with-the-log", "tier": "e2", "failure_type": "loop", "fields": {
            "diagnosis": "The agent runs the same tests again without reading the log of the first failure.",
            "intervention": "Read the whole log of the first failure before you run the tests again.",
            "trigger_state": {"trajectory_description": "run_tests fails three times with the same error"}}},
        {"id": "prices-are-cached", "tier": "e1", "fields": {
            "observation": "Prices are cached for a day in Redis, under price:v2:*.",
            "recommended_action": "After a change to prices.py, delete the keys price:v2:* before you test.",
            "task_context_embedding_text": "prices are out of date"}},
        {"id": "ask-before-migrations", "tier": "e3", "fields": {
            "instruction": "Never run a database migration without a person's approval."}},
    ])  # fmt: skip
    for name, times in (("retry-with-the-log", (41, 18, 13, 4)), ("prices-are-cached", (22, 22, 0, 0))):
        for what, count in zip(("retrieved", "injected", "recovered", "not_recovered"), times, strict=True):
            server.server.patterns.counts(ORG).count([name] * count, what)
    given: tuple[tuple[str, tuple[Scope, ...]], ...] = (
        ("ci agents", ("ingest", "evaluate")),
        ("Mira", ("read", "steer")),
        ("old laptop", ("read",)),
    )
    for name, scopes in given:
        row, _ = storage.keys.add(ORG, name=name, scopes=scopes, now=now - 86_400 * 3)
        storage.audit.add(ORG, row.key_id, "key.add", f"{row.key_id} {' '.join(scopes)}", now - 86_400 * 3)
        if name == "old laptop":
            storage.keys.revoke(ORG, row.key_id, now - 3_600)
            storage.audit.add(ORG, row.key_id, "key.revoke", row.key_id, now - 3_600)
    random = Random(3)
    for name, runs in (("bugfixer", 64), ("migrator", 11)):
        for at in range(runs):
            reached = [random.randint(0, 3 - rung // 3) for rung in range(7)]
            summary = {"reached": reached, "needless": [random.randint(0, one) for one in reached], "checks": True}
            storage.agents.add(ORG, name, "coding", f"r-{at}", summary, now - 60 * at)


def findings(server: Running, now: float) -> None:
    """Add what agents found out about two codebases."""
    noted = (
        ("command", "Makefile", "The tests need `make services` first. Without it, test_orders waits for Redis "
         "and fails after 30 s."),
        ("note", "shop/prices.py", "Prices are rounded in `round_price`, not in the templates."),
        ("gotcha", "shop/orders/export.py", "The export reads the whole table.\n\n" + "\n".join(
            f"{at}. chunk of {at * 500} rows: {at * 0.7:.1f} s" for at in range(1, 12))),
        ("note", "", "Releases are cut from the branch `stable`, never from `main`."),
    )  # fmt: skip
    for name, count in (("acme/shop", 4), ("acme/billing", 2)):
        given = [
            Finding(
                content=content, file_path=path, finding_type=kind, finding_id=f"{at:032x}",
                created_at=datetime.fromtimestamp(now - 5_000 * (at + 1), timezone.utc).isoformat(timespec="seconds"),
            )
            for at, (kind, path, content) in enumerate(noted[:count])
        ]  # fmt: skip
        server.server.findings.store.put(Codebase(org_id=ORG, codebase_id=name), given)


def decide(threads: Threads) -> dict[str, str]:
    """Open threads in several phases, and return the addresses of two of them."""
    stuck = threads.open(
        Cause(
            kind="run_stalled", key="bugfixer-4211 1", title="bugfixer repeats a failing call", run_id=NOTED,
            evidence=(
                Evidence(id="e1", label="3 calls alike", text="run_tests shop/ -> 2 failed: test_total, test_refund"),
                Evidence(id="e2", label="told at call 7", text="The same call has failed before. Read its error."),
            ),
        ),
        proposals=[
            Proposal.of_intent("Get the run out of the loop of failing test runs.", confidence=0.82),
            Proposal.of_context("The error names line 18 of shop/total.py, which it has not read.", confidence=0.71),
            Proposal.of_action("inject_guidance", {"run_id": NOTED, "text": "Read shop/total.py, line 18, first."},
                               confidence=0.66),
        ],
        run="live",
    )  # fmt: skip
    threads.open(
        Cause(kind="proposal", key="drop", title="Delete the orders of 2019 from the archive?", run_id="migrator-4203"),
        proposals=[Proposal.of_question("Which archive: the one of the shop, or that of the books?", confidence=0.4)],
    )
    asked = Cause(kind="proposal", key="moment", title="Replace moment.js by date-fns or by Temporal?")
    threads.open(asked, policy=Policy(auto_advance=frozenset()))
    threads.open(
        Cause(kind="release", key="4.12", title="Release 4.12"),
        children=[Cause(kind="part", key=f"4.12 {part}", title=part) for part in ("Changelog", "Announcement")],
    )
    ended = threads.open(Cause(kind="run_stalled", key="docs", title="docs-writer waits for a lock", run_id="docs-1"))
    threads.drain()
    threads.dismiss(ended.id, by=Actor.person("Mira"), reason="The lock was released by itself.")
    threads.drain()
    return {"thread": stuck.id, "thread-ended": ended.id}


def pages(server: Running, threads: dict[str, str]) -> Sequence[tuple[str, str]]:
    """Return the names of the pages with their addresses."""
    return (
        ("threads", "/ui/threads"), ("threads-progress", "/ui/threads?show=progress"),
        *((name, f"/ui/threads/{thread_id}") for name, thread_id in threads.items()),
        ("runs", "/ui/"), ("run", "/ui/runs/fix-42"), ("live", "/ui/runs/bugfixer-4211"), ("health", "/ui/health"),
        ("patterns", "/ui/patterns"), ("pattern", "/ui/patterns/retry-with-the-log"),
        ("new-pattern", "/ui/new-pattern?tier=e1"), ("experiments", "/ui/experiments"),
        ("memory", "/ui/memory"), ("codebase", "/ui/memory/acme%2Fshop"),
        ("recalled", "/ui/memory/acme%2Fshop?q=how+do+I+run+the+tests"),
        ("experiment", "/ui/experiments/steering-in-ci"), ("agents", "/ui/agents"),
        ("agent", "/ui/agents/one?name=bugfixer&profile=coding"), ("keys", "/ui/keys"), ("audit", "/ui/audit"),
        ("org", "/ui/org"), ("none", "/ui/?q=nothing"), ("missing", "/ui/nowhere"),
    )  # fmt: skip


def log_in(page: Page, server: Running) -> None:
    page.goto(f"{server.url}/ui/login")
    page.locator("#key").fill(server.key)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{server.url}/ui/")


def draw(folder: Path, server: Running, threads: dict[str, str], options: dict[str, Any], suffix: str) -> Iterator[str]:
    with browser() as chromium:
        context = chromium.new_context(**options)
        page = context.new_page()
        page.goto(f"{server.url}/ui/login")
        page.screenshot(path=folder / f"login{suffix}.png")
        log_in(page, server)
        for name, path in pages(server, threads):
            page.goto(server.url + path)
            page.screenshot(path=folder / f"{name}{suffix}.png", full_page=name != "runs")
            yield name
        context.close()


def main() -> int:
    log, now = demo_log(), time.time()
    with ExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with Threads(data / "threads.db", org_id=ORG) as threads:
            decided = decide(threads)
        server = stack.enter_context(running(data, threads_url=str(data / "threads.db")))
        seed(server, log, now)
        if len(sys.argv) > 1:
            folder = Path(sys.argv[1])
            folder.mkdir(parents=True, exist_ok=True)
            wide: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}
            sizes = {"": wide, "-dark": {**wide, "color_scheme": "dark"},
                     "-narrow": {"viewport": {"width": 360, "height": 780}}}  # fmt: skip
            wanted = sys.argv[2:] or [*sizes]
            for suffix in wanted:
                for _ in draw(folder, server, decided, sizes[suffix], suffix):
                    pass
            return 0
        with browser() as chromium:
            context = chromium.new_context(viewport={"width": 1180, "height": 900}, device_scale_factor=1.25)
            page = context.new_page()
            log_in(page, server)
            page.screenshot(path=PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
