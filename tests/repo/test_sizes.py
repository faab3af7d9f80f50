"""Modules and functions stay short: HOUSE's limits, with every exception listed beside its reason."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parents[2]
MODULES = sorted(ROOT.glob("packages/*/src/**/*.py"))
MODULE_LINES = 400
FUNCTION_LINES = 60
FUNCTION_LINES_P90 = 25

SHORT_LINES = 60

SHORT_MODULES = {
    "packages/claude-agent/src/reasonblocks_claude_agent/_memory.py": "the tools do not load steering",
    "packages/core/src/reasonblocks/__main__.py": "`python -m` needs it",
    "packages/core/src/reasonblocks/backends/_http/_store.py": "the sink and the evaluator do without it",
    "packages/core/src/reasonblocks/backends/_jsonl_sink.py": "a sink without SQLite must not import it",
    "packages/core/src/reasonblocks/calibration/_lasting.py": "a model of its own: only it is fitted without outcomes",
    "packages/core/src/reasonblocks/traces/_anthropic.py": "every format of recorded runs is a module of its own",
    "packages/core/src/reasonblocks/types/_finding.py": "the values of one feature, like each module beside it",
    "packages/langchain/src/reasonblocks_langchain/_memory.py": "the tools do not load steering",
    "packages/openai-agents/src/reasonblocks_openai_agents/_memory.py": "the tools do not load steering",
    "packages/server/src/reasonblocks_server/_storage/_migrate.py": "a worker that does not migrate imports no Alembic",
}
"""Private modules of fewer lines with one importer, by their path from the root: the reason not to merge them."""
LONG_MODULES: dict[str, str] = {}
"""Modules that may be longer, by their path from the root: the reason."""


def functions(module: Path) -> list[tuple[str, int]]:
    """Each function's place and its lines, from `def` to its end; a docstring counts."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    place = module.relative_to(ROOT)
    return [(f"{place}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1) for node in found]


FUNCTIONS = [function for module in MODULES for function in functions(module)]


def test_every_module_is_short_or_has_a_reason() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    long = {module: count for module, count in lines.items() if count > MODULE_LINES}
    assert {module: count for module, count in long.items() if module not in LONG_MODULES} == {}
    assert [module for module in LONG_MODULES if module not in long] == []


def dotted(module: Path) -> str:
    """The name by which a module is imported."""
    parts = module.with_suffix("").parts
    return ".".join(parts[parts.index("src") + 1 :]).removesuffix(".__init__")


def imported(module: Path) -> set[str]:
    """Absolute names of the modules, and of the names in modules, that a module imports."""
    package = dotted(module).split(".")[: None if module.name == "__init__.py" else -1]
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            home = ".".join([*base, *([node.module] if node.module else [])])
            found |= {home, *(f"{home}.{alias.name}" for alias in node.names)}
    return found


def test_a_short_private_module_has_several_importers_or_a_reason() -> None:
    imports = {module: imported(module) for module in MODULES}
    found = {}
    for module in MODULES:
        lines = len(module.read_text(encoding="utf-8").splitlines())
        if lines < SHORT_LINES and module.name != "__init__.py" and module.name.startswith("_"):
            importers = [other for other in MODULES if dotted(module) in imports[other]]
            found[str(module.relative_to(ROOT))] = len(importers)
    alone = {module for module, importers in found.items() if importers < 2}
    assert alone - {*SHORT_MODULES} == set()
    assert {*SHORT_MODULES} - alone == set(), "these have grown, or have several importers: they need no reason"


def test_no_function_is_a_mistake() -> None:
    assert [(place, lines) for place, lines in FUNCTIONS if lines > FUNCTION_LINES] == []


def test_nine_functions_in_ten_are_short() -> None:
    lines = [lines for _, lines in FUNCTIONS]
    p90 = quantiles(lines, n=10, method="inclusive")[-1]
    longest = max(FUNCTIONS, key=lambda function: function[1])
    print(f"{len(lines)} functions: median {median(lines):g} lines, p90 {p90:g}, longest {longest[1]} ({longest[0]})")
    assert p90 <= FUNCTION_LINES_P90
