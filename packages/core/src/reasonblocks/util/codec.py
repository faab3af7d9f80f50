"""Converts frozen values to plain JSON and back, by their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .json import JSON, MAX_INT

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails, SchemaValidator

T = TypeVar("T")


class _Missing:
    """Stands for the value of a missing field in errors."""

    def __repr__(self) -> str:
        return "missing"


MISSING = _Missing()


class Unreadable(ValueError):
    """JSON that is not of the type. `path` has the names of the fields, the innermost last; `value`, `rule`."""

    def __init__(self, path: tuple[str, ...], value: object, rule: str) -> None:
        self.path, self.value, self.rule = path, value, rule
        super().__init__(f"{'.'.join(path)} {rule}")


FIRST_FAULT = {"fail_fast": True}
"""Ends the reading of a list or an object at its first fault; an error for each item could cost seconds."""


class Codec(Generic[T]):
    """Converts values of one dataclass, and of those within it.

    Reading takes a list for a tuple and an object for a dataclass, ignores unknown fields, and gives missing ones their
    defaults. Texts, numbers and flags are read strictly: "1" is no number, 1 is no flag, and NaN is no float. Whole
    numbers are at least `least`, and of 64 bits. `check` is called with each text and each value of any JSON, and
    returns it, or raises `ValueError` with the rule.

    pydantic is imported at the first use, because most runs are neither saved nor read.
    """

    def __init__(
        self, kind: type[T], *, least: int = -MAX_INT - 1, check: Callable[[object], object] | None = None
    ) -> None:
        self._kind, self._check = kind, check
        self._stricter: dict[str, dict[str, Any]] = {
            "tuple": FIRST_FAULT,
            "list": FIRST_FAULT,
            "dict": FIRST_FAULT,
            "str": {"strict": True},
            "bool": {"strict": True},
            "int": {"strict": True, "ge": least, "le": MAX_INT},
            "float": {"strict": True, "allow_inf_nan": False},
        }
        self._whole_number = f"must be a whole number from {least} to 2**63 - 1"
        self._tables: set[str] = set()
        self._tools = cache(self._built)

    def prepare(self) -> None:
        """Build at once what the first use would build."""
        self._tools()

    def read(self, given: Mapping[str, Any]) -> T:
        """Return the value of a JSON object. Raises `Unreadable` with the first fault."""
        from pydantic_core import ValidationError

        _, validator = self._tools()
        try:
            value: T = validator.validate_python(dict(given))
        except ValidationError as exc:
            raise self._unreadable(exc.errors(include_url=False)[0]) from None
        return value

    def write(self, value: T, exclude: Mapping[str, set[str]] | None = None) -> dict[str, JSON]:
        """Return the value as plain JSON that shares nothing with it, without the fields to `exclude` of its parts."""
        adapter, _ = self._tools()
        plain: dict[str, JSON] = adapter.dump_python(value, mode="json", exclude=exclude, warnings=False)
        return plain

    def _built(self) -> tuple[TypeAdapter[T], SchemaValidator]:
        from pydantic import TypeAdapter
        from pydantic_core import SchemaValidator

        adapter = TypeAdapter(self._kind)
        return adapter, SchemaValidator(self._strict(adapter.core_schema))

    def _strict(self, schema: Any) -> Any:
        """Return the schema with strict scalars.

        pydantic's own strict mode would refuse lists for tuples, too, unless it parses the JSON text itself.
        """
        if isinstance(schema, list):
            return [self._strict(part) for part in schema]
        if not isinstance(schema, dict):
            return schema
        kind = str(schema.get("type"))
        if kind == "dataclass-field" and _innermost(schema)["type"] == "dict":
            self._tables.add(schema["name"])
        strict = {key: self._strict(part) for key, part in schema.items()} | self._stricter.get(kind, {})
        if self._check is None or kind not in ("str", "any"):
            return strict
        return {"type": "function-after", "schema": strict, "function": {"type": "no-info", "function": self._check}}

    def _unreadable(self, error: ErrorDetails) -> Unreadable:
        """Return our error for one of pydantic's."""
        kind, loc = error["type"], error["loc"]
        path = self._path([part for part in loc if isinstance(part, str)])
        if kind in ("missing", "missing_argument") and isinstance(loc[-1], str):
            return Unreadable(path, MISSING, "is missing")
        message = error["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
        rule = self._whole_number if kind in _WHOLE_NUMBERS else _RULES.get(kind, message)
        return Unreadable(path, error["input"], rule)

    def _path(self, names: list[str]) -> tuple[str, ...]:
        """Return the names of fields, without the keys of a mapping and what is within them."""
        ends = [at for at, name in enumerate(names, 1) if name in self._tables]
        return tuple(names[: ends[0]] if ends else names)


def _innermost(schema: Any) -> Any:
    """Return the schema within those for a default and for None."""
    return _innermost(schema["schema"]) if "schema" in schema else schema


_WHOLE_NUMBERS = ("int_type", "greater_than_equal", "less_than_equal")
_RULES: Mapping[str, str] = {
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "float_type": "must be a finite number",
    "finite_number": "must be a finite number",
    "missing": "has too few items",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "dataclass_type": "must be an object",
}
