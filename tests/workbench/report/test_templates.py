"""The templates cannot switch off escaping, and the page's policy allows its own style and script only."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
from pathlib import Path

import pytest

import reasonblocks_workbench.report
from reasonblocks_workbench.report import SCRIPT, STYLESHEET, TEMPLATES, Assets, NavLink, run_page
from tests.workbench.report.markup import parsed
from tests.workbench.report.runs import ordinary

FILES = sorted(TEMPLATES.iterdir())
HTML = [path for path in FILES if path.suffix == ".html"]
MODULES = sorted(Path(reasonblocks_workbench.report.__file__).parent.glob("*.py"))
UNSAFE = re.compile(r"\|\s*safe\b|autoescape|Markup|\{%-?\s*(?:raw|filter|autoescape)|\|\s*(?:tojson|xmlattr|urlize)")
INLINE_CODE = re.compile(r"<[^>]*\s(?:on\w+|style)\s*=|javascript:|https?://", re.IGNORECASE)


@pytest.mark.parametrize("path", HTML, ids=lambda path: path.name)
def test_a_template_does_not_switch_off_escaping(path: Path) -> None:
    assert UNSAFE.findall(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", HTML, ids=lambda path: path.name)
def test_a_template_has_no_inline_code_style_or_foreign_address(path: Path) -> None:
    assert INLINE_CODE.findall(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", HTML, ids=lambda path: path.name)
def test_every_value_in_an_attribute_is_quoted(path: Path) -> None:
    source = re.sub(r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert re.findall(r"=\s*\{\{", re.sub(r"\{%.*?%\}", "", source)) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_no_module_makes_markup(path: Path) -> None:
    names = {node.id for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Name)}
    assert not names & {"Markup", "markupsafe"}


def test_style_and_script_are_written_into_the_page_unchanged_and_the_policy_has_their_hashes() -> None:
    root = parsed(run_page(ordinary()))
    policy = next(one for one in root.find("meta") if one.attributes.get("http-equiv")).attributes["content"]
    for tag, name in (("style", STYLESHEET), ("script", SCRIPT)):
        source = (TEMPLATES / name).read_text(encoding="utf-8")
        assert [one.text for one in root.find(tag)] == [source]
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_the_script_makes_no_markup_of_strings() -> None:
    source = (TEMPLATES / SCRIPT).read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|fetch\(", source
    )


def test_a_linked_page_has_no_style_script_or_policy_of_its_own() -> None:
    assets = Assets(stylesheet="/ui/report.css", script="/ui/report.js")
    root = parsed(run_page(ordinary(), assets=assets, nav=[NavLink(name="Runs", href="/ui/runs", current=True)]))
    assert root.find("style") == []
    assert [(one.attributes, one.text) for one in root.find("script")] == [({"src": "/ui/report.js", "defer": ""}, "")]
    assert [one.attributes["href"] for one in root.find("link")] == ["/ui/report.css"]
    assert not [one for one in root.find("meta") if one.attributes.get("http-equiv")]


def test_two_pages_of_one_run_are_the_same() -> None:
    assert run_page(ordinary()) == run_page(ordinary())
