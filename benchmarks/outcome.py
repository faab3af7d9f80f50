"""Measures whether steering makes a real model succeed more often: the model plays seeded tasks, and at the state
before its first text each run is branched into arms, which go on from there. docs/outcome.md explains it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from _outcome.backend import BackendError
from _outcome.models import FetchError
from _outcome.run import NotRepeatable
from _outcome.store import StoreError

from reasonblocks.exceptions import ReasonBlocksError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _outcome.backend import Backend
    from _outcome.experiment import Experiment, Phased
    from _outcome.rows import Row
    from _outcome.run import Factory
    from _outcome.store import Store

TUNE, REPORT = 0, 1000
"""The first seeds of the splits: what is chosen is chosen on `tune`, and what is claimed is measured on `report`."""
LANES, GPU_LANES = 8, 256
"""Runs at a time."""


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="outcome", description=__doc__)
    model = options.add_argument_group("the model")
    model.add_argument(
        "--base-url", metavar="URL", help="an OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1"
    )
    model.add_argument("--model", metavar="NAME", help="the model's name there")
    model.add_argument("--key-env", default="OPENAI_API_KEY", metavar="NAME", help="variable that holds the key")
    model.add_argument("--gguf", metavar="FILE", help="a local model: a file, or smollm2 or qwen2.5-coder-1.5b")
    model.add_argument("--strong", metavar="NAME", help="a stronger model beside it, named likewise, for some arms")
    model.add_argument("--gpu", metavar="FILE", help="a Qwen2 model in a GGUF file, on a GPU")
    model.add_argument(
        "--concurrency", type=at_least(1), metavar="N", help=f"runs at a time (default {LANES}, on a GPU {GPU_LANES})"
    )
    model.add_argument("--temperature", type=float, default=0.3, metavar="T", help="of the sampling (default 0.3)")
    model.add_argument(
        "--threads", type=at_least(1), metavar="N", help="threads of a local model (default: one a core)"
    )
    model.add_argument(
        "--guided", action="store_true", help="limit a local model's arguments to valid values, for one of 135M or so"
    )
    what = options.add_argument_group("what is run")
    what.add_argument("--families", default="", metavar="A,B", help="only these tasks (default: all)")
    what.add_argument("--tasks", action="append", default=[], metavar="FILE:FACTORY", help="your own environment")
    what.add_argument("--through", default="loop", choices=("loop", "langchain", "openai-agents"), help="who plays")
    what.add_argument("--split", default="tune", choices=("tune", "report"), help="which seeds (default tune)")
    what.add_argument(
        "--seeds",
        type=span,
        default=range(20),
        metavar="N",
        help="seeds of each family (default 20), or A-B for a part",
    )
    what.add_argument(
        "--samples", type=at_least(1), default=2, metavar="K", help="runs of each arm at a point (default 2)"
    )
    what.add_argument("--arms", default="off,shipped", metavar="A,B", help="arms (default off,shipped)")
    what.add_argument(
        "--points", type=at_least(0), default=0, metavar="N", help="branch points of each family at most (0: all)"
    )
    what.add_argument("--shadow", action="store_true", help="only the unsteered runs, to see how often one gets stuck")
    what.add_argument("--whole", action="store_true", help="whole runs from the first call, instead of branches")
    shown = options.add_argument_group("where, and how it is shown")
    shown.add_argument(
        "--out", default="outcome-runs", metavar="FOLDER", help="runs go there, and are resumed from there"
    )
    shown.add_argument("--tables", action="store_true", help="no runs, only the tables of what is there")
    shown.add_argument("--markdown", action="store_true", help="the tables as docs/evidence.md holds them")
    shown.add_argument("--json", action="store_true", help="the figures as JSON")
    shown.add_argument("--columns", action="store_true", help="say what each column is, and stop")
    shown.add_argument(
        "--side-by-side", type=int, default=0, metavar="N", help="N points where an arm helped, N of harm"
    )
    return options


def experiment(given: argparse.Namespace) -> Experiment:
    """What the options ask for."""
    from _outcome.arms import ARMS
    from _outcome.experiment import Experiment

    families = chosen_families(given)
    arms = names(given.arms)
    unknown = [name for name in arms if name not in ARMS]
    if unknown or "off" not in arms:
        wrong = f"no such arm: {', '.join(unknown)}" if unknown else "every arm is compared with the arm `off`: name it"
        sys.exit(f"outcome: {wrong}; the arms are {', '.join(ARMS)}")
    if not given.whole and (same := [name for name in arms if ARMS[name].only_whole]):
        sys.exit(f"outcome: in branches there are no standing rules: {', '.join(same)} would be `off`; add --whole")
    if not given.strong and (stronger := [name for name in arms if ARMS[name].escalate]):
        sys.exit(f"outcome: {', '.join(stronger)}: name a stronger model by --strong")
    first = {"tune": TUNE, "report": REPORT}[given.split]
    if given.seeds.stop > REPORT:
        sys.exit(f"outcome: --seeds: a split has {REPORT} seeds, not {given.seeds.stop}")
    seeds = [first + at for at in given.seeds]
    return Experiment(families=families, seeds=seeds, arms=arms, samples=given.samples, points=given.points)


def names(given: str) -> list[str]:
    """The names of an option with commas, each once."""
    return [*dict.fromkeys(filter(None, map(str.strip, given.split(","))))]


def here(path: str) -> Path:
    """The path from where the command was called: `./dev` works in the folder of the clone."""
    return Path(os.environ.get("DEV_CWD", "."), path)


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option that takes numbers from `least` on."""

    def number(given: str) -> int:
        if int(given) < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {given}")
        return int(given)

    return number


def span(given: str) -> range:
    """The places of "20" or "60-119" in a split, both ends included."""
    first, dash, last = given.partition("-")
    if not first.isdecimal():
        raise argparse.ArgumentTypeError(f"must be at least 1, or two places as in 20-39, not {given}")
    places = range(int(first), int(last) + 1) if dash else range(int(first))
    if not places:
        raise argparse.ArgumentTypeError(f"must be at least 1, and the greater place last, not {given}")
    return places


def chosen_families(given: argparse.Namespace) -> dict[str, Factory]:
    """The named families, your own tasks, or without either every family that needs nothing installed."""
    from _outcome.own_tasks import load
    from _outcome.tasks import FAMILIES, PLAIN

    families = {name: load(name) for name in given.tasks}
    named = names(given.families) or ([] if families else [*PLAIN])
    for name in named:
        if name not in FAMILIES:
            sys.exit(f"outcome: no such family: {name}; the families are {', '.join(FAMILIES)}")
    return {**families, **{name: FAMILIES[name] for name in named}}


def backend(given: argparse.Namespace) -> Backend:
    """The model that the options name, with the stronger one, if there is one."""
    own = single(given)
    if not given.strong:
        return own
    from _outcome.backend import WithStronger

    if own.in_rounds:
        sys.exit("outcome: --strong goes with --gguf or --base-url")
    changes = {"gguf": given.strong} if given.gguf else {"model": given.strong}
    return WithStronger(own, single(argparse.Namespace(**{**vars(given), **changes, "guided": False})))


def single(given: argparse.Namespace) -> Backend:
    """One model."""
    lanes = given.concurrency or (GPU_LANES if given.gpu and not given.gguf else LANES)
    if given.gguf:
        from _outcome.backends.local import LocalBackend

        path = here(given.gguf)
        if not path.is_file():
            from _outcome.models import fetch

            path = fetch(given.gguf)
        return LocalBackend(
            path,
            lanes=lanes,
            temperature=given.temperature,
            threads=given.threads,
            guided=given.guided,
        )
    if given.gpu:
        from _outcome.backends.gpu import GpuBackend

        return GpuBackend(here(given.gpu), lanes=lanes, temperature=given.temperature)
    if given.base_url and given.model:
        from _outcome.backends.endpoint import EndpointBackend

        return EndpointBackend(
            given.base_url,
            given.model,
            key=os.environ.get(given.key_env),
            lanes=lanes,
            temperature=given.temperature,
        )
    sys.exit("outcome: name a model: --base-url URL --model NAME, --gguf FILE, or --gpu FILE")


def opened(given: argparse.Namespace, model: str) -> Store:
    """The rows of this model, split and build; those of other texts, another build or temperature are refused."""
    from _outcome import arms
    from _outcome.own_tasks import source
    from _outcome.store import Store, build, digest

    settings = {
        "model": model,
        "split": given.split,
        "temperature": given.temperature,
        "guided": given.guided,
        "build": build(),
        "arms": digest({"arms": Path(arms.__file__).read_text(encoding="utf-8")}),
        "tasks": digest({name: source(name) for name in given.tasks}) if given.tasks else None,
    }
    return Store(here(given.out) / f"{Path(model).name}.{given.split}.jsonl", settings)


def run(given: argparse.Namespace) -> None:
    """Play what is not there yet."""
    what = experiment(given)
    if given.through != "loop":
        return run_through(given, what)
    model = backend(given)
    try:
        with opened(given, model.model) as store:
            if given.whole:
                advance(store, what.whole, model, what.count("whole", model.model, store), "whole runs")
                return None
            advance(store, what.shadow, model, what.count("shadow", model.model, store), "shadow runs")
            if not given.shadow:
                advance(store, what.branch, model, what.count("branch", model.model, store), "branches")
    finally:
        model.close()


def run_through(given: argparse.Namespace, what: Experiment) -> None:
    """Play whole runs with a framework's agent, with and without steering."""
    from _outcome.progress import progress
    from _outcome.through import Endpoint
    from _outcome.through.plays import plays

    if not (given.base_url and given.model):
        sys.exit(f"outcome: --through {given.through} plays on an endpoint: name --base-url URL --model NAME")
    endpoint = Endpoint(
        base_url=given.base_url, model=given.model, key=os.environ.get(given.key_env, ""), temperature=given.temperature
    )
    with opened(given, given.model) as store:
        found = plays(what, endpoint, given.through, store, given.concurrency or LANES)
        with progress(f"runs through {given.through}", len(found)) as step:
            for row in found.rows():
                store.append(row)
                step(row)


def advance(store: Store, phase: Phased, model: Backend, total: int, name: str) -> None:
    """Play one phase under a progress bar."""
    from _outcome.progress import progress

    with progress(f"{name} of {model.model}", total) as step:
        phase(model, store, step)


def show(given: argparse.Namespace) -> None:
    """Print the tables, and the verdict, of all rows in the folder."""
    from _outcome.arms import ARMS
    from _outcome.side_by_side import side_by_side
    from _outcome.store import read
    from _outcome.table import json_lines, markdown, text
    from _outcome.tables import tables
    from _outcome.transcripts import write
    from _outcome.verdict import as_text, verdicts

    files = sorted(here(given.out).glob(f"*.{given.split}.jsonl"))
    if not files:
        sys.exit(f"outcome: no runs of the split {given.split} in {given.out}")
    rows = [row for path in files for row in read(path).rows]
    if given.side_by_side:
        print("\n".join(side_by_side(rows, given.side_by_side)))
        return
    form = json_lines if given.json else markdown if given.markdown else text
    for table in tables(rows, placement=lambda arm: ARMS[arm].place if arm in ARMS else "-"):
        print("\n".join(form(table)), flush=True)
    judged = [*verdicts(rows)]
    for found in judged:
        print(json.dumps(found.as_dict()) if given.json else "\n".join(as_text(found)))
    if not (judged or given.json):
        print(unjudged(rows))
    for path in files:
        write(path.with_suffix(".replay.jsonl"), read(path).rows)


def unjudged(rows: Sequence[Row]) -> str:
    """Why there is no verdict, and what to do."""
    shadows = [row for row in rows if row.phase == "shadow" and row.error is None]
    reached = sum(row.point is not None for row in shadows)
    if not reached:
        return (
            f"There is no verdict: in none of {len(shadows)} shadow runs would the agent have been told something. Play"
            " more tasks (--seeds), harder ones, or whole runs (--whole)."
        )
    return (
        f"There is no verdict yet: in {reached} of {len(shadows)} shadow runs the agent would have been told something,"
        " and no branch of `off` and another arm was played from there. Call it again without --shadow."
    )


def main() -> None:
    given = parser().parse_args()
    if given.columns:
        from _outcome.tables import COLUMNS

        print("\n".join(f"{name:18} {meaning}" for name, meaning in COLUMNS.items()))
        return
    try:
        if not (given.tables or given.side_by_side):
            run(given)
        show(given)
    except KeyboardInterrupt:
        sys.exit("outcome: interrupted; the same command goes on from here")
    except (ReasonBlocksError, StoreError, BackendError, FetchError, NotRepeatable, ImportError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
