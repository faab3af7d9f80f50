"""Hunt: a setting in one of several files, at the end of a chain of "see FILE"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ..environment import Call, Tool, ToolError, tool
from ._arguments import checked, listed

SERVICES = "billing mailer search auth ledger notify export import".split()
FOLDERS = "conf deploy ops services infra env".split()
FILES = "base common prod legacy local shared network limits hosts main extra stage".split()
ENDINGS = ("ini", "yaml", "conf", "txt")
KEYS = {"timeout": ("30", "60"), "workers": ("4", "8"), "region": ("eu", "us"), "owner": ("ops", "web")}
FILES_IN_FOLDER = 3
CHAINS = (1, 2, 2, 3)
"""Files of a chain, the last of which has the value."""
WRONG_ANSWERS = 3
"""Wrong answers after which the task ends, so that guessing does not pay."""

_PORT = r"^{}\.port = (\d+)$"
_POINTER = r"^{}\.port: see (\S+)$"


class Hunt:
    """A search for the port of a service. Files of other services, and their ports, are in the way."""

    system = (
        "You look things up in a project's files. Call exactly one tool each turn. Give the value with the tool answer."
    )
    tools: Sequence[Tool] = (
        tool("list_dir", "List the files of a folder", path="folder"),
        tool("read_file", "Read a file", path="path, such as conf/base.ini"),
        tool("find_file", "Find files by a part of their name", name="part of the name"),
        tool("answer", "Give the port; ends the task if it is right", value="the number"),
    )
    max_steps = 22

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> str:
        """Write the files of this seed."""
        rng = Random(f"hunt {seed}")
        services = rng.sample(SERVICES, 4)
        self._service, self._folders = services[0], rng.sample(FOLDERS, 3)
        self._port = str(rng.randint(3000, 9999))
        self._files = _files(self._folders, services, self._port, rng)
        self._shown: list[str] = []
        self._read: list[str] = []
        self._listed: list[str] = []
        self._wrong: list[str] = []
        self._solved = False
        return (
            f"On which port does the service {self._service} listen? It is set in one of the files in these folders. "
            f"Find it, then call answer with the number. {self._where()}"
        )

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """List, read, find or answer. Raises `ToolError` for unknown paths and for a wrong answer."""
        value = next(iter(checked(name, arguments, self.tools).values()))
        if name == "list_dir":
            return self._list(value.removeprefix("./").rstrip("/"))
        if name == "read_file":
            return self._show(value.removeprefix("./"))
        return self._find(value) if name == "find_file" else self._answer(value)

    @property
    def done(self) -> bool:
        """True after the right answer, or after too many wrong ones."""
        return self._solved or len(self._wrong) >= WRONG_ANSWERS

    def success(self) -> bool:
        """Return True after the right answer."""
        return self._solved

    def choices(self) -> Mapping[str, Sequence[str]]:
        """Return the folders, and the files, services and ports that were shown."""
        ports = dict.fromkeys(re.findall(r"\.port = (\d+)", "\n".join([self._files[path] for path in self._read])))
        found = {
            "list_dir.path": self._folders,
            "read_file.path": self._shown,
            "find_file.name": [self._service],
            "answer.value": [*ports],
        }
        return {key: values for key, values in found.items() if values}

    def reference(self) -> Call | None:
        """Follow what the files read so far say; or read the next file; or list the next folder."""
        seen = "\n".join([self._files[path] for path in self._read])
        if port := re.search(_PORT.format(self._service), seen, re.M):
            return Call("answer", {"value": port[1]})
        named = re.findall(_POINTER.format(self._service), seen, re.M)
        for path in [*named, *self._shown]:
            if path not in self._read:
                return Call("read_file", {"path": path})
        for folder in self._folders:
            if folder not in self._listed:
                return Call("list_dir", {"path": folder})
        return None

    def _where(self) -> str:
        return f"Folders: {listed(self._folders)}."

    def _list(self, folder: str) -> str:
        if folder in ("", "."):
            return self._where()
        if folder not in self._folders:
            raise ToolError(f"no folder {folder!r}. {self._where()}")
        self._add(self._listed, folder)
        return self._paths([path for path in self._files if path.startswith(f"{folder}/")])

    def _show(self, path: str) -> str:
        if path in self._folders:
            raise ToolError(f"{path} is a folder: list it with list_dir")
        if path not in self._files:
            raise ToolError(f"no file {path!r}. List a folder with list_dir. {self._where()}")
        self._add(self._read, path)
        for found in re.findall(r": see (\S+)$", self._files[path], re.M):
            self._add(self._shown, found)
        return self._files[path]

    def _find(self, part: str) -> str:
        found = [path for path in self._files if part and part.lower() in path]
        return self._paths(found) if found else f"No file has {part[:40]!r} in its name. {self._where()}"

    def _answer(self, value: str) -> str:
        if not any(re.search(rf"\b{re.escape(value)}\b", self._files[path]) for path in self._read):
            said = f"no file that you have read has {value[:40]!r}. Look it up before you answer."
            raise ToolError(f"{said} {self._where()}")
        if value != self._port:
            self._wrong.append(value)
            raise ToolError(f"{value[:40]} is not the port of {self._service}")
        self._solved = True
        return "That is right."

    def _paths(self, paths: Sequence[str]) -> str:
        for path in paths:
            self._add(self._shown, path)
        return "\n".join(paths)

    @staticmethod
    def _add(known: list[str], value: str) -> None:
        if value not in known:
            known.append(value)


def _files(folders: Sequence[str], services: Sequence[str], port: str, rng: Random) -> dict[str, str]:
    """Return the text of each file, in the order of the folders. The first service is the one asked for."""
    stems = rng.sample(FILES, FILES_IN_FOLDER * len(folders))
    paths = [f"{folder}/{stems.pop()}.{rng.choice(ENDINGS)}" for folder in folders for _ in range(FILES_IN_FOLDER)]
    lines = {path: [_setting(rng.choice(services[1:]), rng) for _ in range(2)] for path in paths}
    asked, others = services[0], services[1:]
    chain = rng.sample(paths, rng.choice(CHAINS))
    for path, following in zip(chain, [*chain[1:], None]):
        lines[path].append(f"{asked}.port: see {following}" if following else f"{asked}.port = {port}")
    for path in rng.sample([path for path in paths if path not in chain], 2):
        lines[path].append(f"{rng.choice(others)}.port = {rng.randint(3000, 9999)}")
    return {path: "\n".join(lines[path]) for path in paths}


def _setting(service: str, rng: Random) -> str:
    key = rng.choice([*KEYS])
    return f"{service}.{key} = {rng.choice(KEYS[key])}"
