"""Measures whether steering makes a real model succeed more often: the model plays seeded tasks, and at the state before
its first text each run is branched into arms, which go on from there. docs/outcome.md explains it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _outcome.experiment import Experiment

TUNE, REPORT = 0, 1000
"""The first seeds of the two splits: what is chosen is chosen on `tune`, and what is claimed is measured on `report`."""


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="outcome", description=__doc__)
    model = options.add_argument_group("the model")
    model.add_argument(
        "--base-url", metavar="URL", help="an OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1"
    )
    model.add_argument("--model", metavar="NAME", help="the model's name there")
    model.add_argument("--key-env", default="OPENAI_API_KEY", metavar="NAME", help="variable that holds the key")
    model.add_argument("--gguf", metavar="FILE", help="a local model: a file, or smollm2 or qwen2.5-coder-1.5b")
    model.add_argument("--gpu", metavar="FILE", help="a Qwen2 model in a GGUF file, on a GPU")
    model.add_argument("--concurrency", type=int, default=8, metavar="N", help="runs at a time (default 8)")
    model.add_argument("--temperature", type=float, default=0.3, metavar="T", help="of the sampling (default 0.3)")
    what = options.add_argument_group("what is run")
    what.add_argument("--families", default="", metavar="A,B", help="only these tasks (default: all)")
    what.add_argument("--tasks", action="append", default=[], metavar="FILE:FACTORY", help="your own environment")
    what.add_argument("--through", default="loop", choices=("loop", "langchain", "openai-agents"), help="who plays")
    what.add_argument("--split", default="tune", choices=("tune", "report"), help="which seeds (default tune)")
    what.add_argument("--seeds", type=int, default=20, metavar="N", help="seeds of each family (default 20)")
    what.add_argument("--samples", type=int, default=2, metavar="K", help="runs of each arm at a point (default 2)")
    what.add_argument("--arms", default="off,shipped", metavar="A,B", help="arms (default off,shipped)")
    what.add_argument(
        "--points", type=int, default=0, metavar="N", help="branch points of each family at most (0: all)"
    )
    what.add_argument("--whole", action="store_true", help="whole runs from the first call, instead of branches")
    shown = options.add_argument_group("where, and how it is shown")
    shown.add_argument(
        "--out", default="outcome-runs", metavar="FOLDER", help="runs go there, and are resumed from there"
    )
    shown.add_argument("--tables", action="store_true", help="no runs, only the tables of what is there")
    shown.add_argument("--markdown", action="store_true", help="the tables as docs/evidence.md holds them")
    shown.add_argument("--json", action="store_true", help="the figures as JSON")
    shown.add_argument(
        "--side-by-side", type=int, default=0, metavar="N", help="N points where an arm helped, N of harm"
    )
    return options
