"""Reads observations that were exported from Langfuse: by its API, from its tables or a trace's page, or to a store.

Sources: `ObservationV2` of the client `langfuse` 5.0 (the API and the tables, as JSON), and Langfuse's reference of the
fields that it exports to a store, whose names have underscores. An observation is read as a node of LangSmith.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

from reasonblocks.exceptions import RecordError
from reasonblocks.messages import first_text
from reasonblocks.types import JSON

from ._files import LINE_BYTES, Progress, Record, os_reason
from ._langsmith import TOOL, read_nodes
from ._messages import objects, value_of
from ._run import Runs

ROLES = {"GENERATION": "llm", "TOOL": TOOL}
TYPES = frozenset("SPAN EVENT AGENT CHAIN RETRIEVER EVALUATOR EMBEDDING GUARDRAIL".split()) | ROLES.keys()
NAMES = {
    "id": ("id",),
    "name": ("name",),
    "trace_id": ("traceId", "trace_id"),
    "parent_run_id": ("parentObservationId", "parent_observation_id"),
    "start_time": ("startTime", "start_time"),
    "inputs": ("input",),
    "outputs": ("output",),
}
"""The fields of an observation that those of a node have other names for."""
LISTS = ("observations", "data")
"""The keys under which a trace, and an answer of the API, have their observations."""


class LangfuseObservations:
    """Reads a trace as one run: its generations are the steps, its tools their results. Success is not recorded."""

    name = "langfuse"
    title = "Langfuse observations"

    def sniff(self, value: JSON) -> bool:
        return any(map(_is_observation, _observations(value)[:1]))

    def lacks(self, value: JSON) -> str | None:
        first = next(iter(_observations(value)), {})
        return "no 'traceId'" if first_text(first, "type") in TYPES and not self.sniff(value) else None

    def read(self, file: str, records: Iterable[Record | RecordError]) -> Runs:
        return read_nodes(file, records, _nodes)


class LangfuseCsv:
    """Reads the same from CSV, as the tables are exported, too; objects and lists are JSON in their cells."""

    name = "langfuse-csv"
    title = "Langfuse observations (CSV)"

    def opens(self, head: bytes) -> bool:
        columns = set(head.decode("utf-8-sig", "replace").partition("\n")[0].replace('"', "").strip().split(","))
        return {"id", "type", "input", "output"} <= columns and any(name in columns for name in NAMES["trace_id"])

    def read_file(self, path: str, progress: Progress | None) -> Runs:
        return read_nodes(path, _rows(path, progress), _nodes)


def _rows(path: str, progress: Progress | None) -> Iterator[Record | RecordError]:
    csv.field_size_limit(LINE_BYTES)  # a history is longer than the 128 KiB of the module
    line = 1
    try:
        with open(path, "rb") as raw, TextIOWrapper(raw, "utf-8-sig", "replace", newline="") as file:
            rows = csv.DictReader(file, restkey="", strict=True)
            for row in rows:
                if progress:
                    with suppress(OSError):  # a pipe has no position
                        progress(raw.tell())
                line = rows.line_num
                yield Record(line=line, value={name: text for name, text in row.items() if name and text})
        if line == 1:
            yield RecordError(path, None, "has no observation")
    except OSError as error:
        yield RecordError(path, None, os_reason(error))
    except csv.Error as error:
        yield RecordError(path, line + 1, f"is not CSV, so that the rest is not read: {error}")


def _nodes(value: JSON) -> Iterator[JSON]:
    return map(_node, _observations(value))


def _observations(value: JSON) -> list[Mapping[str, Any]]:
    if isinstance(value, dict):
        listed = next((held for name in LISTS if isinstance(held := value.get(name), list)), None)
        return objects([value] if listed is None else listed)
    return objects(value)


def _is_observation(value: Mapping[str, Any]) -> bool:
    return first_text(value, "type") in TYPES and any(name in value for name in NAMES["trace_id"])


def _node(value: Mapping[str, Any]) -> JSON:
    """Return an observation as a node of LangSmith."""
    failed = value.get("level") == "ERROR"
    node = {name: next((value[own] for own in names if own in value), None) for name, names in NAMES.items()}
    usage = value_of(next((value[name] for name in ("usageDetails", "usage_details") if name in value), None))
    return {
        **node,
        "name": node["name"] or "",
        "start_time": node["start_time"] or "",
        "run_type": ROLES.get(first_text(value, "type") or "", "chain"),
        "error": _first(value, "statusMessage", "status_message") or "error" if failed else None,
        "extra": {"invocation_params": {"model": _first(value, "model", "provided_model_name", "providedModelName")}},
        "usage_metadata": _usage(usage) if isinstance(usage, dict) and usage else None,
    }


def _first(value: Mapping[str, Any], *names: str) -> Any:
    return next((value[name] for name in names if value.get(name)), None)


def _usage(details: Mapping[str, Any]) -> JSON:
    """Return the tokens as LangChain counts them. Langfuse counts the parts of the input and of the output apart."""
    counts = {name: count for name, count in details.items() if type(count) is int}

    def among(*words: str) -> int | None:
        found = [count for name, count in counts.items() if all(word in name for word in words)]
        return sum(found) if found else None

    return {
        "input_tokens": among("input"),
        "output_tokens": among("output"),
        "input_token_details": {
            "cache_read": _first(counts, *CACHE_READ),
            "cache_creation": _first(counts, *CACHE_WRITE),
        },
        "output_token_details": {"reasoning": among("output", "reasoning")},
    }


CACHE_READ = ("cache_read_input_tokens", "input_cache_read", "input_cached_tokens")
CACHE_WRITE = ("cache_creation_input_tokens", "input_cache_creation", "input_cache_write_tokens")
