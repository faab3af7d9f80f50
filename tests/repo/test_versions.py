"""One version, exact pins between our packages, and floors that come from versions.toml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


PROJECTS = {path.parent.name: read(path)["project"] for path in sorted(ROOT.glob("packages/*/pyproject.toml"))}
VERSIONS = read(ROOT / "versions.toml")
ADAPTERS = {name: table for name, table in VERSIONS.items() if isinstance(table, dict)}
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

each_package = pytest.mark.parametrize("package", PROJECTS)
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS)


def dependencies(package: str) -> dict[str, Requirement]:
    requirements = [Requirement(line) for line in PROJECTS[package]["dependencies"]]
    return {requirement.name: requirement for requirement in requirements}


def test_all_packages_have_one_version() -> None:
    assert len({project["version"] for project in PROJECTS.values()}) == 1


def test_the_changelog_starts_with_this_version() -> None:
    heads = [line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line[:3] == "## "]
    assert heads[0].split()[1] == PROJECTS["core"]["version"]


@each_package
def test_our_packages_pin_each_other_exactly(package: str) -> None:
    ours = [need for name, need in dependencies(package).items() if name.startswith("reasonblocks")]
    assert all(need.specifier == SpecifierSet(f"=={PROJECTS['core']['version']}") for need in ours)


@each_package
def test_nothing_depends_on_the_index_s_other_reasonblocks(package: str) -> None:
    assert PROJECTS[package]["name"] != "reasonblocks"
    assert "reasonblocks" not in dependencies(package)


@each_package
def test_a_package_s_oldest_python_is_the_oldest_supported(package: str) -> None:
    assert PROJECTS[package]["requires-python"] == f">={VERSIONS['python'][0]}"


@each_package
def test_a_package_names_the_supported_pythons(package: str) -> None:
    named = [line.rpartition(" ")[2] for line in PROJECTS[package]["classifiers"] if " :: Python :: 3." in line]
    assert named == VERSIONS["python"]


def test_python_version_lists_the_supported_pythons() -> None:
    assert sorted((ROOT / ".python-version").read_text(encoding="utf-8").split()) == sorted(VERSIONS["python"])


@each_adapter
def test_an_adapter_s_floor_is_the_oldest_supported_framework(adapter: str) -> None:
    supported = ADAPTERS[adapter]
    need = dependencies(adapter)[supported["distribution"]]
    assert need.specifier == SpecifierSet(f">={supported['oldest']},<{supported['below']}")


def test_every_adapter_is_in_versions_toml() -> None:
    adapters = [
        name for name, project in PROJECTS.items() if "reasonblocks.adapters" in project.get("entry-points", ())
    ]
    assert sorted(adapters) == sorted(ADAPTERS)


@pytest.mark.parametrize("line", CONSTRAINTS)
def test_a_constraint_is_a_name_a_version_and_a_marker(line: str) -> None:
    need = Requirement(line)
    assert need.url is None
    assert [clause.operator for clause in need.specifier] == ["=="]


def test_no_constraint_is_ours() -> None:
    assert not [line for line in CONSTRAINTS if line.startswith("reasonblocks")]
