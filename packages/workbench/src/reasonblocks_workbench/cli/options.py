"""Defines the options that commands share, and the settings of `ReasonBlocks` as options, one row for each."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, ClassVar, TypeAlias, TypeGuard, get_type_hints

from typer import BadParameter
from typer import Option as TyperOption

from reasonblocks.engine.fsm import Thresholds
from reasonblocks.exceptions import ConfigError
from reasonblocks.types import Budget, Escalate

Json: TypeAlias = Annotated[bool, TyperOption("--json", help="print one JSON object per line, nothing else on stdout")]
Format: TypeAlias = Annotated[
    str | None,
    TyperOption(
        parser=lambda name: _format(name),
        metavar="NAME",
        help="the format of the files; by default, it is detected from their content",
    ),
]


def _format(name: str) -> str:
    """Return the name of a reader. Raises `BadParameter` with all names."""
    from ..traces import installed_readers

    names = [reader.name for reader in installed_readers()]
    if name not in names:
        raise BadParameter(f"{name!r} is unknown; valid: {', '.join(names)}")
    return name


class FlagError(ConfigError):
    """A flag that breaks a rule. Unlike that of a setting, its message has no value."""

    def __init__(self, flag: str, rule: str) -> None:
        super().__init__(flag, None, rule)
        self.args = (f"{flag}: {rule}",)


Read: TypeAlias = Callable[[str], object]


def exclusive(given: Mapping[str, object], *, required: bool = False) -> None:
    """Raise `FlagError` if more than one of these flags is given, or none although one is required."""
    flags = [flag for flag, value in given.items() if value]
    if len(flags) > 1:
        raise FlagError(flags[1], f"cannot be combined with {flags[0]}")
    if required and not flags:
        raise FlagError(" or ".join(given), "one of them is required")


def whole(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise BadParameter(f"{text!r} is not a whole number") from None


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    with suppress(ValueError):
        if int(text) >= 1:
            return int(text)
    raise BadParameter(f"{text!r} is not a whole number of at least 1")


def number(text: str) -> int | float:
    """Read an int if it is written as one, otherwise a float: windows must be ints."""
    try:
        return int(text)
    except ValueError:
        return decimal(text)


def decimal(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise BadParameter(f"{text!r} is not a number") from None


def reference(text: str) -> object:
    """Import `module:attribute`, from the current folder first. A class is called without arguments."""
    module, _, path = text.partition(":")
    if not module or not path:
        raise BadParameter(f"{text!r} is not module:attribute")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: object = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
        return found() if isinstance(found, type) else found
    except (ImportError, AttributeError) as error:
        raise BadParameter(f"{text!r} cannot be imported: {error}") from error
    except MemoryError:
        raise
    except Exception as error:
        raise BadParameter(f"{text!r} raises {type(error).__name__}: {error}") from error


def name_or_reference(text: str) -> object:
    """Return a name, such as that of an installed package's monitor, or import the user's own `module:attribute`."""
    return reference(text) if ":" in text else text


def pair(read: Read) -> Read:
    """Return a reader of KEY=VALUE that reads the value by `read`."""

    def read_pair(text: str) -> tuple[str, object]:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise BadParameter(f"{text!r} is not KEY=VALUE")
        try:
            return key.strip(), read(value.strip())
        except BadParameter as error:
            raise BadParameter(f"{text!r}: {error}") from None

    return read_pair


def _shares(text: str) -> tuple[float, ...]:
    return tuple([number(part) for part in text.split("/")])


def _counts(text: str) -> dict[str, int]:
    """Read the numbers of named things, as in `search:10/fetch:5`."""
    pairs = [part.rpartition(":") for part in text.split("/")]
    return {name: whole(count) for name, _, count in pairs}


def _yes(text: str) -> bool:
    if text not in ("yes", "no", "true", "false"):
        raise BadParameter(f"{text!r} is not yes or no")
    return text in ("yes", "true")


RECORDS: Mapping[str, tuple[type[Any], Mapping[str, Read]]] = {
    "budget": (
        Budget,
        {"cost_usd": number, "seconds": number, "tools": _counts, "tell_at": _shares, "every_call": _yes},
    ),
    "escalate": (Escalate, {"model": str, "effort": str}),
}
"""The settings that are records, and the readers of their fields that are no whole numbers."""


def record(setting: str) -> Read:
    """Return a reader of a record's fields, as in `calls=40,tokens=200000,tell_at=0.5/0.1,every_call=yes`."""
    readers = RECORDS[setting][1]

    def read_record(text: str) -> object:
        found: dict[str, Any] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            key, equals, value = part.partition("=")
            if not equals:
                raise BadParameter(f"{part!r} is not NAME=VALUE")
            if key in found:
                raise BadParameter(f"{key!r} is given twice")
            found[key] = readers.get(key, whole)(value)
        return record_of(setting, found)

    return read_record


def record_of(setting: str, given: Mapping[str, Any]) -> object:
    """Return the record with these fields, of an option or a file's table. Raises `BadParameter` for another field."""
    kind = RECORDS[setting][0]
    valid = [field.name for field in fields(kind)]
    if unknown := [name for name in given if name not in valid]:
        raise BadParameter(f"{unknown[0]!r} is no field of {setting}; it has {', '.join(valid)}")
    return kind(**given)


def keyed(key: str, read: Read) -> Read:
    """Return a reader of the value of one fixed key."""

    return lambda text: (key, read(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A value of the command line: its text, and what was read from it."""

    text: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a setting. `kind` is "one", "many", "table" or "switch".

    `valid` are the values that the option takes, if they differ from those of the setting in Python.
    """

    setting: str
    flag: str
    help: str
    read: Read = str
    metavar: str = "TEXT"
    kind: str = "one"
    valid: str = ""

    @property
    def parameter(self) -> Parameter:
        """The parameter of a command that has this option."""
        switch = self.kind == "switch"
        declared = TyperOption(
            f"{self.flag}/--no-{self.flag[2:]}" if switch else self.flag,
            parser=None if switch else lambda text: Typed(text=text, value=self.read(text)),
            metavar=None if switch else self.metavar,
            help=self.help,
            rich_help_panel=PANEL,
        )
        annotation: object = bool | None if switch else str | None if self.kind == "one" else list[str] | None
        name = self.flag.removeprefix("--").replace("-", "_")
        return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation, declared])


PANEL = "Settings of ReasonBlocks; an option overrides --config"


def _reference(setting: str, flag: str, text: str, kind: str = "one") -> Option:
    return Option(setting=setting, flag=flag, read=reference, metavar="MODULE:NAME", help=text, kind=kind)


def _threshold(key: str) -> Option:
    return Option(
        setting="fsm_thresholds",
        flag=f"--{key.replace('_', '-')}",
        read=keyed(key, number),
        metavar="N",
        kind="table",
        help=f"--fsm {key}=N",
    )


CONFIG = Option(
    setting="config", flag="--config", metavar="FILE.toml", help="settings by their names in Python"
)  # fmt: skip
OPTIONS: tuple[Option, ...] = (
    Option(
        setting="task_profile", flag="--task-profile", metavar="NAME",
        help="coding, pr_review or qa; overrides each run's own",
    ),
    Option(
        setting="fsm_thresholds", flag="--fsm", read=pair(number), metavar="KEY=N", kind="table",
        help="a threshold or window of the state machine; may be repeated",
    ),
    *(_threshold(field.name) for field in fields(Thresholds)),
    Option(
        setting="weights", flag="--weight", read=pair(number), metavar="MONITOR=N", kind="table",
        help="the weight of a monitor; may be repeated",
    ),
    Option(
        setting="model_routing", flag="--route", read=pair(str), metavar="STATE=MODEL", kind="table",
        help="the model of a state; may be repeated",
    ),
    Option(
        setting="tool_roles", flag="--tool-role", read=pair(str), metavar="TOOL=ROLE", kind="table",
        help="what a tool is for; may be repeated",
    ),
    Option(
        setting="budget", flag="--budget", read=record("budget"), metavar="LIMIT=N,...",
        help='the limits that end a run, such as "calls=40,tell_at=0.5/0.1"',
    ),
    Option(
        setting="escalate", flag="--escalate", read=record("escalate"), metavar="FIELD=VALUE,...",
        help='a stronger model for a stuck run, such as "model=strong,after=1,dwell=4,times=2"',
    ),
    Option(
        setting="token_budget", flag="--token-budget", read=whole, metavar="N",
        help="tokens that --stop-when over_budget allows",
    ),
    Option(
        setting="second_look", flag="--second-look", metavar="doubt|unchecked|always",
        help="the ends of a run that get one more call, with facts", valid="doubt, unchecked, always",
    ),
    Option(
        setting="patience", flag="--patience", metavar="N of M",
        help='how many of the newest steps have to be dead before the monitors speak ("4 of 5")',
    ),
    Option(setting="calibration", flag="--calibration", metavar="FILE", help="a TOML file from `calibrate`"),
    Option(
        setting="profile", flag="--profile", metavar="own|FILE",
        help='learn each run\'s patience from its agent\'s other runs: "own" takes those of the files',
        valid="own, or the path of a file, such as ./profiles.db",
    ),
    Option(setting="e_traces_enabled", flag="--e-traces", kind="switch", help="retrieve patterns (on)"),
    Option(
        setting="e2_requires_signal", flag="--e2-requires-signal", kind="switch",
        help="retrieve E2 patterns only when something is wrong (off)",
    ),
    Option(setting="standing_rules", flag="--standing-rules", metavar="WHEN", help="first_call or run"),
    Option(setting="placement", flag="--placement", metavar="WHERE", help="tail, message or system"),
    Option(setting="step_deadline_ms", flag="--step-deadline-ms", read=number, metavar="MS", help="deadline per step"),
    Option(setting="strict", flag="--strict", kind="switch", help="raise faults instead of continuing unsteered (off)"),
    Option(setting="org_id", flag="--org-id", help="the org whose patterns are used"),
    Option(setting="project_id", flag="--project-id", help="the project id that sinks receive"),
    _reference("scorer", "--scorer", "a function Step -> difficulty in 0..1"),
    _reference("transition", "--transition", "a function (state, history) -> state"),
    Option(
        setting="monitors", flag="--monitor", read=name_or_reference, metavar="MODULE:NAME|NAME", kind="many",
        help="your own monitor, or one from an installed package; may be repeated",
        valid="MODULE:NAME, or the name of a monitor of an installed package",
    ),
    _reference("pattern_store", "--pattern-store", "the store that patterns are retrieved from"),
    _reference("embedder", "--embedder", "the embedder that turns text into vectors"),
    _reference("sinks", "--sink", "a sink that receives the runs' events (none); may be repeated", "many"),
    _reference("on_injection", "--on-injection", "a function (injection, run) -> text, injection or None"),
    Option(
        setting="stop_when", flag="--stop-when", read=name_or_reference, metavar="stalled|over_budget|MODULE:NAME",
        help="the condition that ends a run", valid="stalled, over_budget, MODULE:NAME",
    ),
    _reference("advisor", "--advisor", "a function AdviceRequest -> text or None; asked at most about 100 times"),
    _reference("redact", "--redact", "a function that removes secrets from events"),
)  # fmt: skip

_THRESHOLDS = frozenset(field.name for field in fields(Thresholds))
_FLAGS: Mapping[str, str] = {option.setting: option.flag for option in reversed(OPTIONS) if "_" in option.setting}
"""The options by their settings, of those whose names are no words of English."""
_PLACE = re.compile(r"(\w+)(?:\.(\w+)|\[(.+)\])?")
"""The name of a `ConfigError`: a setting, and perhaps its field or key."""
_TABLES = frozenset(option.setting for option in OPTIONS if option.kind == "table")
PATHS = frozenset({"calibration", "profile"})
NOT_SETTABLE = frozenset({"api_key", "base_url", "live_streaming_enabled", "mailbox", "operator_notes"})
"""Keys, servers and notes: no command asks a server, and a key on a command line is seen by everyone."""
REFERENCES = frozenset(option.setting for option in OPTIONS if option.read in (reference, name_or_reference))


class Settings:
    """The settings that a command was given: the file of --config, and the options by their names in Python.

    `typed` has each option as it was typed.
    """

    OPTIONS: ClassVar[tuple[Option, ...]] = (CONFIG, *OPTIONS)

    def __init__(self, **given: Any) -> None:
        self.given: dict[str, Any] = {}
        self.typed: list[tuple[Option, Typed]] = []
        for option in self.OPTIONS:
            value = given[option.parameter.name]
            if value is not None:
                self._add(option, value)
        self.config: str | None = self.given.pop("config", None)

    def _add(self, option: Option, given: Any) -> None:
        if option.kind == "switch":
            found = [Typed(text="", value=given)]
        else:
            found = [given] if option.kind == "one" else list(given)
        self.typed.extend((option, one) for one in found)
        values = [one.value for one in found]
        value = dict(values) if option.kind == "table" else values if option.kind == "many" else values[0]
        self.given[option.setting] = _merged(self.given.get(option.setting), value)

    @classmethod
    def parameters(cls) -> list[Parameter]:
        return [option.parameter for option in cls.OPTIONS]

    def read(self, over: str | None = None) -> dict[str, Any]:
        """Return the keyword arguments for `ReasonBlocks`. Options override the file; tables are merged key by key.

        The settings of the file `over` override those of --config.
        """
        settings: dict[str, Any] = {}
        files = map(settings_of_file, filter(None, (self.config, over)))
        for found in (*files, self.given):
            for name, value in found.items():
                settings[name] = _merged(settings.get(name), value) if name in _TABLES else value
        return settings

    def named(self, error: ConfigError, over: str | None = None) -> ConfigError:
        """Return the error of a setting with the option as it was typed, or with the file that has the setting."""
        found = _PLACE.fullmatch(error.name)
        setting, part = (found[1], found[2] or (found[3] or "").strip("'")) if found else (error.name, "")
        if setting in _THRESHOLDS:
            setting, part = "fsm_thresholds", setting
        typed = [(option, one) for option, one in self.typed if option.setting == setting]
        meant = [(option, one) for option, one in typed if _is_meant(option, one, part, error.value)]
        if not meant:
            for file in filter(None, (over, self.config)):
                if setting in _toml(file):
                    return ConfigError(f"{file}: {error.name}", error.value, error.rule)
        return _as_typed(error, part, *(meant or typed)[-1]) if typed else error


def _is_meant(option: Option, typed: Typed, part: str, value: object) -> bool:
    """Return True if an error with this value, in this part of the setting, is about what was typed."""
    if option.kind == "table":
        return typed.value[0] in (part, value)
    return option.kind == "one" or typed.value is value or type(typed.value).__name__ == part


def _as_typed(error: ConfigError, part: str, option: Option, typed: Typed) -> ConfigError:
    rule = re.sub(r"\w+", lambda word: _FLAGS.get(word[0], word[0]), error.rule)
    if option.valid and rule.startswith("unknown;"):
        rule = f"unknown; valid: {option.valid}"
    if option.kind == "table" and (_is_meant(option, typed, part, error.value) or isinstance(error.value, Mapping)):
        return ConfigError(option.flag, typed.text, rule)
    if part:
        rule = f"{part}={error.value!r} {rule}"
    elif error.value is not typed.value:
        rule = f"{error.value!r}: {rule}"
    return ConfigError(option.flag, typed.text, rule)


def expand_options(command: Callable[..., int]) -> Callable[..., int]:
    """Return the command for typer, which has the options of each of its parameters that is a group of them.

    A group is `Settings`, or a dataclass whose fields are options.
    """
    given = signature(command, eval_str=True).parameters.values()
    groups = {each.name: each.annotation for each in given if _is_group(each.annotation)}
    parts = {name: _parameters(group) for name, group in groups.items()}

    @wraps(command)
    def run(**values: Any) -> int:
        made = {
            name: group(**{each.name: values.pop(each.name) for each in parts[name]}) for name, group in groups.items()
        }
        return command(**values, **made)

    single = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in given if each.name not in groups]
    shown = Signature([*single, *(each for part in parts.values() for each in part)])
    vars(run).update(__signature__=shown, __annotations__={})
    return run


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and (issubclass(annotation, Settings) or is_dataclass(annotation))


def _parameters(group: type[Any]) -> list[Parameter]:
    if issubclass(group, Settings):
        return group.parameters()
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def _merged(before: object, value: object) -> object:
    if isinstance(before, Mapping) and isinstance(value, Mapping):
        return {**before, **value}
    return value


def settings_of_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read settings from a TOML file, by their names in Python. Raises `ConfigError`.

    Callables are given as `module:attribute`, and paths are relative to the file.
    """
    file = os.fspath(path)
    settings, valid = _toml(file), setting_names()
    for name, value in settings.items():
        if name not in valid:
            raise ConfigError.unknown(file, name, valid)
        if name in REFERENCES:
            settings[name] = _resolved(file, name, value)
        elif name in RECORDS and isinstance(value, Mapping):
            settings[name] = _checked_record(file, name, value)
        elif name in PATHS and _is_path(name, value):
            settings[name] = os.path.join(os.path.dirname(file), os.path.expanduser(value))
    return settings


def _checked_record(path: str, name: str, value: Mapping[str, Any]) -> object:
    try:
        return record_of(name, value)
    except BadParameter as error:
        raise ConfigError(f"{path}: {name}", dict(value), str(error)) from error


def setting_names() -> frozenset[str]:
    """Return the keyword names of `ReasonBlocks` that a command may set."""
    from reasonblocks.options import Options

    return frozenset(field.name for field in fields(Options)) - NOT_SETTABLE


def _is_path(name: str, value: object) -> TypeGuard[str]:
    """Return True for a path; a profile without a dot or a slash is a word, such as "own"."""
    return isinstance(value, str) and (name != "profile" or bool({".", "/", os.sep} & {*value}))


def _toml(path: str) -> dict[str, Any]:
    from reasonblocks.util.files import NotToml, read_toml

    try:
        return read_toml(path)
    except OSError as error:
        raise ConfigError("--config", path, f"cannot be read: {error.strerror}") from error
    except NotToml as error:
        raise ConfigError("--config", path, f"is not TOML: {error}") from error


def _resolved(path: str, name: str, value: object) -> object:
    read = next(option.read for option in OPTIONS if option.setting == name)
    try:
        if isinstance(value, list):
            return [read(item) if isinstance(item, str) else item for item in value]
        return read(value) if isinstance(value, str) else value
    except BadParameter as error:
        raise ConfigError(f"{path}: {name}", value, str(error)) from error
