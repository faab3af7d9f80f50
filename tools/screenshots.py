"""Draws docs/run-page.png, the page of the demo's steered run: `python tools/screenshots.py`.

With a folder as its argument, it draws more pages there: narrow, dark, long, hostile, and lists.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(ROOT / "benchmarks")]

import report as made_up  # noqa: E402 - the benchmark, with its made-up runs
from _browser import browser  # noqa: E402
from broken_repo import write_to  # noqa: E402
from scripted_model import ScriptedModel  # noqa: E402
from two_runs import TASK, messages_of  # noqa: E402

from reasonblocks import JsonlSink, ReasonBlocks  # noqa: E402
from reasonblocks_workbench.report import OnePage, Row, RunPage, page_of_log, run_page  # noqa: E402
from reasonblocks_workbench.traces import RunLog, read_logs  # noqa: E402
from tests.workbench.report.runs import hostile  # noqa: E402

PICTURE = ROOT / "docs" / "run-page.png"
WIDTH, HEIGHT = 1180, 1230
STARTED = 1_767_261_600.0
"""The time that is shown as the run's start."""
SECONDS = 42.0
"""The time that is shown as its duration: the scripted model answers at once."""


def demo_run() -> RunPage:
    """Run the demo's agent steered, and return its page."""
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
        page = page_of_log(run)
        return replace(
            page, started=STARTED, finished=STARTED + SECONDS, place="", rows=tuple(map(timeless, page.rows))
        )


def timeless(row: Row) -> Row:
    """Return the row without its times, which are those of a script."""
    return replace(row, at=None, entry=replace(row.entry, latency_ms=None, overhead_ms=0.0))


def many_runs() -> str:
    book = OnePage()
    for seed in range(2_000):
        book.add(page_of_log(made_up.log(seed, 18)))
    return "".join(book.parts())


def pictures(folder: Path, demo: str) -> Iterator[tuple[Path, str, int, str]]:
    """Yield each picture's file, its page, its width, and its theme."""
    long = run_page(page_of_log(made_up.log(3, 1_000)))
    for name, html, width, theme in (
        ("wide", demo, 1440, "light"), ("dark", demo, 1440, "dark"), ("narrow", demo, 360, "light"),
        ("long", long, 1440, "light"), ("hostile", run_page(hostile()), 1440, "light"),
        ("list", many_runs(), 1440, "light"), ("list-narrow", many_runs(), 360, "dark"),
    ):  # fmt: skip
        yield folder / f"{name}.png", html, width, theme


def main() -> int:
    demo = run_page(demo_run())
    with browser() as chromium, tempfile.TemporaryDirectory() as folder:
        shown = [(PICTURE, demo, WIDTH, "light")] if len(sys.argv) < 2 else pictures(Path(sys.argv[1]), demo)
        for file, html, width, theme in shown:
            source = Path(folder) / f"{file.stem}.html"
            source.write_text(html, encoding="utf-8")
            context = chromium.new_context(
                viewport={"width": width, "height": HEIGHT}, color_scheme="dark" if theme == "dark" else "light",
                offline=True, device_scale_factor=1.5 if file == PICTURE else 1,
            )  # fmt: skip
            page = context.new_page()
            page.goto(source.as_uri())
            page.screenshot(path=file)
            context.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
