"""A seeded repository, in whose files an agent has to find a setting and change it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from _outcome.environment import Tool, ToolError, tool, unknown

FOLDERS = ("api", "billing", "cache", "jobs", "mail", "search", "storage", "users")
STEMS = ("base", "core", "client", "engine", "helpers", "limits", "options", "policy", "runtime", "worker")
SETTINGS = (
    "ARCHIVE_DAYS", "BACKOFF_SECONDS", "BATCH_ROWS", "BLOCK_BYTES", "CURSOR_TTL", "DRAIN_SECONDS", "EXPORT_ROWS",
    "FETCH_PAGES", "GRACE_MINUTES", "HEARTBEAT_MS", "IDLE_MINUTES", "INDEX_SHARDS", "JITTER_MS", "KEEP_VERSIONS",
    "LEASE_SECONDS", "LOCK_TRIES", "MERGE_WIDTH", "NOTICE_DAYS", "PAGE_ROWS", "POLL_SECONDS", "PURGE_DAYS",
    "QUEUE_DEPTH", "QUOTA_MB", "RANK_WINDOW", "RETRY_LIMIT", "ROUTE_HOPS", "SAMPLE_RATE", "SNAPSHOT_HOURS",
    "STALE_MINUTES", "THROTTLE_MS", "TOKEN_MINUTES", "TRIAL_DAYS", "UPLOAD_MB", "WARMUP_ROWS", "WINDOW_HOURS",
    "WRITE_TRIES",
)  # fmt: skip
FILES, SETTINGS_OF_A_FILE, MAX_STEPS = 12, 3, 16


class Repository:
    """Twelve files with three settings each. Neither a file's name nor its folder hints at its settings.

    `task` 0 and 1 are settings of the same file; 2 is one of another file. An agent has at most `MAX_STEPS` calls.
    """

    system = (
        "You change a setting in a repository. Read one file after the other until you have seen the line that assigns "
        "the setting. Then set it there. Never read a file twice. Make one call at a time."
    )
    tools = (
        tool("list_folder", "List a folder of the repository.", path="the folder, such as ."),
        tool("read_file", "Read a file.", path="the file, such as a/b.py"),
        tool(
            "set_value", "Change the value of a setting in the file that assigns it; this ends the task.",
            path="the file", name="the setting", value="the new value",
        ),
    )  # fmt: skip

    def __init__(self, seed: int, task: int) -> None:
        chance = random.Random(seed)
        places = chance.sample([f"{folder}/{stem}.py" for folder in FOLDERS for stem in STEMS], FILES)
        names = chance.sample(SETTINGS, FILES * SETTINGS_OF_A_FILE)
        groups = [names[at : at + SETTINGS_OF_A_FILE] for at in range(0, len(names), SETTINGS_OF_A_FILE)]
        self.files = {
            path: {name: chance.randrange(2, 90) for name in group} for path, group in zip(sorted(places), groups)
        }
        one, other = chance.sample(sorted(self.files), 2)
        first, second, *_ = self.files[one]
        elsewhere, *_ = self.files[other]
        self.path, self.name = [(one, first), (one, second), (other, elsewhere)][task]
        self.value = str(chance.randrange(100, 999))
        self.ended = self.won = False

    @property
    def order(self) -> str:
        """The user's message."""
        return f"Set {self.name} to {self.value}."

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Make a call. Raises `ToolError` for one that cannot be made."""
        path = str(arguments.get("path", "")).strip().removeprefix("./").strip("/")
        if name == "list_folder":
            return self._listed(path)
        if name == "read_file":
            return "\n".join(f"{key} = {value}" for key, value in self._file(path).items())
        if name != "set_value":
            raise unknown(name, self.tools)
        return self._set(path, str(arguments.get("name", "")), str(arguments.get("value", "")))

    def choices(self) -> Mapping[str, Sequence[str]]:
        """The valid values of arguments, for a model too small to write them freely."""
        folders = [".", *sorted({path.partition("/")[0] for path in self.files})]
        return {
            "list_folder.path": folders,
            "read_file.path": [*self.files],
            "set_value.path": [*self.files],
            "set_value.name": [self.name],
            "set_value.value": [self.value],
        }

    def text_of(self, path: str) -> str:
        """Return the content of a file, for a checkout."""
        return "".join(f"{key} = {value}\n" for key, value in self.files[path].items())

    def _listed(self, path: str) -> str:
        if path in ("", "."):
            return "\n".join(f"{folder}/" for folder in sorted({name.partition("/")[0] for name in self.files}))
        found = [name for name in sorted(self.files) if name.startswith(f"{path}/")]
        if not found:
            raise ToolError(f"there is no folder {path}")
        return "\n".join(found)

    def _file(self, path: str) -> dict[str, int]:
        if path not in self.files:
            raise ToolError(f"there is no file {path}")
        return self.files[path]

    def _set(self, path: str, name: str, value: str) -> str:
        if name not in self._file(path):
            raise ToolError(f"{path} does not assign {name}")
        self.ended, self.won = True, (path, name, value) == (self.path, self.name, self.value)
        return "Done."


def declared(name: str, description: str, parameters: Mapping[str, Any]) -> Tool:
    """Return a tool of the memory as chat APIs declare it."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
