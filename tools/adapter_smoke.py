"""Checks an adapter where only it and the core are installed: it is found, and all modules without an extra load."""

from __future__ import annotations

import importlib
import pkgutil
import re
from importlib.metadata import entry_points, requires


def main() -> None:
    points = entry_points(group="reasonblocks.adapters")
    packages = {point.module.partition(".")[0] for point in points}
    for point in points:
        point.load()
    (package,) = packages
    optional = names_in_extras(package)
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if error.name not in optional:
                raise
    print(f"{package} works alone")


def names_in_extras(package: str) -> set[str]:
    """Return the names of the requirements of a package's extras."""
    lines = [line for line in requires(package) or [] if "extra ==" in line]
    return {re.split(r"[\s;<>=!~\[(]", line, maxsplit=1)[0] for line in lines}


if __name__ == "__main__":
    main()
