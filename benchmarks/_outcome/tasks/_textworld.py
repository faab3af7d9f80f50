"""Plays a TextWorld game: makes it by its seed, and turns its texts into short results."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from . import _textworld_maker

INSTALL = "is not installed; run the benchmark as ./dev bench outcome, or: pip install {0}"
LONGEST = 500
"""Characters of a result. The list of exits and things at its end is kept whole."""

_TITLE = re.compile(r"-= (.+?) =-")
_STATUS = re.compile(r"\n>[^\n]*$")
_QUESTION = re.compile(r"Would you like to RESTART.*", re.DOTALL)
_EXIT = re.compile(r"(?:You (?:need|don't like) [^?]*\?|There is an?) [^.]*?(?:exit|entranceway|going)[^.]*\.")
_RECIPE = re.compile(r"Ingredients:(.*?)Directions:(.*)", re.DOTALL)
_REASSURANCE = re.compile(r"Don't worry, (?:it|there) is [^.]*\.")


class NotInstalled(ImportError):
    """Raised where a package is missing that the environment plays on."""

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} {INSTALL.format(package)}")


class Played:
    """A game that is being played: `text` is its last answer and `commands` what it accepts now."""

    def __init__(self, kind: str, settings: Mapping[str, Any], seed: int) -> None:
        try:
            import textworld
        except ImportError as exc:
            raise NotInstalled("textworld") from exc
        wanted = textworld.EnvInfos(
            feedback=True, description=True, admissible_commands=True, won=True, lost=True, extras=["walkthrough"]
        )
        file = _made(kind, json.dumps(settings, sort_keys=True), seed)
        with warnings.catch_warnings():  # the interpreter knows no other scores than those of published games
            warnings.simplefilter("ignore")
            self._game = textworld.start(str(file), wanted)
            self._game.seed(0)
        self._take(self._game.reset())
        self.text = str(self._state.description)

    def type(self, command: str) -> None:
        """Type a command."""
        self._take(self._game.step(command)[0])

    def close(self) -> None:
        """Stop the interpreter of the game."""
        self._game.close()

    @property
    def room(self) -> str:
        """The title of the present room."""
        titles = _TITLE.findall(self._state.description)
        return str(titles[0]).lower() if titles else ""

    @property
    def own_way(self) -> Sequence[str]:
        """TextWorld's own solution from the beginning of a game that has one."""
        return [*self._state["extra.walkthrough"]]

    def _take(self, state: Any) -> None:
        self._state = state
        self.text = str(state.feedback)
        self.commands: Sequence[str] = state.admissible_commands
        self.won, self.lost = bool(state.won), bool(state.lost)


def shortened(answer: str) -> str:
    """Return an answer without what is there for a screen, and without the game's many ways to name an exit."""
    text = _QUESTION.sub("", _STATUS.sub("", answer)).replace("*** The End ***", "")
    if recipe := _RECIPE.search(text):
        lists = [", ".join(filter(None, map(str.strip, part.splitlines()))) for part in recipe.groups()]
        return f"Ingredients: {lists[0]}. Directions: {lists[1]}."
    return " ".join(_REASSURANCE.sub("", _EXIT.sub("", " ".join(text.split()))).split())


def clipped(text: str, kept: str) -> str:
    """Return the text, shortened so that with `kept` at its end it has at most `LONGEST` characters."""
    room = max(LONGEST - len(kept) - 1, 0)
    return f"{text if len(text) <= room else text[: max(room - 3, 0)] + '...'} {kept}".strip()


@cache
def _folder() -> Path:
    """Return the folder of this process's games, removed when it ends."""
    folder = tempfile.mkdtemp(prefix="reasonblocks-textworld-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def _made(kind: str, settings: str, seed: int) -> Path:
    """Return the file of a game, made at most once by this process: it takes some 5 s."""
    file = Path(tempfile.mkdtemp(dir=_folder())) / f"{kind}.z8"
    program = [sys.executable, _textworld_maker.__file__, kind, settings, str(seed), str(file)]
    ran = subprocess.run(
        program, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False
    )
    if ran.returncode or not file.exists():
        reason = ([*ran.stdout.splitlines(), *ran.stderr.splitlines()] or ["it gave no reason"])[-1]
        raise RuntimeError(f"TextWorld made no game {kind!r} of seed {seed}: {reason}")
    return file
