"""Program that makes one TextWorld game: KIND SETTINGS SEED FILE, with the settings as JSON.

It is a process of its own because TextWorld's generators depend on the order of sets, which only the variable
PYTHONHASHSEED fixes, at the start of a process.
"""

from __future__ import annotations

import importlib
import json
import sys

CHALLENGES = {"coins": "tw_coin_collector.coin_collector", "cooking": "tw_cooking.cooking"}


def make(kind: str, settings: str, seed: str, file: str) -> None:
    """Write the game into the file, beside what TextWorld needs to know about it."""
    from textworld import GameOptions
    from textworld.generator import compile_game

    challenge = importlib.import_module(f"textworld.challenges.{CHALLENGES[kind]}")
    options = GameOptions()
    options.seeds = int(seed)
    options.path = file
    compile_game(challenge.make(json.loads(settings), options), options)


if __name__ == "__main__":
    make(*sys.argv[1:])
