"""The files of deploy/ use options, variables and names that exist."""

from __future__ import annotations

import re
import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from reasonblocks_server.commands import keys, serve
from reasonblocks_server.settings import _VARIABLES, Settings
from reasonblocks_workbench.cli._doctor import OF_THE_SERVER
from reasonblocks_workbench.cli._main import command_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = import_module("yaml").safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
SERVERS = sorted(name for name in SERVICES if name.startswith("server"))
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
NGINX = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
OF_UVICORN = {"FORWARDED_ALLOW_IPS"}
COMMANDS = {"keys": command_of(keys, "keys"), "serve": command_of(serve, "serve")}


def parsed(argv: list[str]) -> dict[str, Any]:
    """Return the values of a command's options. A wrong one fails the test."""
    name, *given = argv
    command = COMMANDS[name]
    if name == "keys":
        name, *given = given
        command = command.commands[name]
    with command.make_context(name, given) as context:
        values: dict[str, Any] = context.params
    return values


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_is_given_options_and_variables_that_exist(name: str) -> None:
    given = SERVICES[name]
    assert parsed(given["command"])["host"] == "0.0.0.0"
    assert {*given["environment"]} - OF_UVICORN <= {variable for variable, _ in _VARIABLES.values()}


def test_the_settings_of_a_server_are_accepted() -> None:
    assert Settings.from_environ(SERVICES["server-1"]["environment"]).database.startswith("postgresql://")


def test_the_servers_know_the_database_by_its_name_user_and_port() -> None:
    url = urlsplit(SERVICES["server-1"]["environment"]["REASONBLOCKS_DATABASE_URL"].replace(":?}", "}"))
    postgres = SERVICES["postgres"]["environment"]
    assert (url.hostname, url.port, url.username) == ("postgres", 5432, postgres["POSTGRES_USER"])
    assert url.path == f"/{postgres['POSTGRES_DB']}"
    assert urlsplit(SERVICES["server-1"]["environment"]["QDRANT_URL"]).hostname in SERVICES


def test_nginx_balances_over_the_servers() -> None:
    port = parsed(SERVICES["server-1"]["command"])["port"]
    assert sorted(re.findall(r"^ *server ([\w-]+):(\d+) ", NGINX, re.MULTILINE)) == [(n, str(port)) for n in SERVERS]
    assert f"EXPOSE {port}\n" in DOCKERFILE
    (volume,) = (one.split(":")[0] for one in SERVICES["nginx"]["volumes"])
    assert (DEPLOY / volume).exists()


def test_the_routes_of_nginx_exist(tmp_path: Path) -> None:
    from reasonblocks_server import create_app

    paths = {*create_app(Settings(data=tmp_path)).openapi()["paths"]}
    named = [
        f"/{path}" for group in re.findall(r"\^\(/v1\)\?/(\S+)\$ \{", NGINX) for path in group.strip("()").split("|")
    ]
    assert len(named) == 5
    assert [path for path in named if f"/v1{path}" not in paths] == []


def test_the_services_and_volumes_that_a_service_needs_are_declared() -> None:
    needed = {name for service in SERVICES.values() for name in service.get("depends_on", {})}
    stores = {one.split(":")[0] for name in ("postgres", "qdrant") for one in SERVICES[name]["volumes"]}
    assert needed <= {*SERVICES}
    assert stores == {*COMPOSE["volumes"]}


def test_the_image_is_built_from_files_extras_and_options_that_exist() -> None:
    copied = [path for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.M) for path in line.split()[:-1]]
    assert [path for path in copied if not (ROOT / path).exists()] == []
    (install,) = re.findall(r"^RUN pip install ((?:.*\\\n)*.*)$", DOCKERFILE, re.MULTILINE)
    installed = dict(re.findall(r"\./(packages/\w+)(?:\[([\w,]+)\])?", install))
    for folder, extras in installed.items():
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert {*extras.split(",")} - {""} <= {*project.get("optional-dependencies", {})}
        ours = re.findall(r"\breasonblocks-(\w+)", " ".join(project["dependencies"]))
        assert {f"packages/{name}" for name in ours} <= {*installed} & {*copied}, "no index has a package of ours"
    (start,) = re.findall(r"^CMD \[(.*)\]$", DOCKERFILE, re.MULTILINE)
    assert parsed([part.strip(' "') for part in start.split(",")])["host"] == "0.0.0.0"
    assert {*re.findall(r"(REASONBLOCKS_\w+)=", DOCKERFILE)} <= {variable for variable, _ in _VARIABLES.values()}


def test_the_doctor_knows_the_variables_of_the_server() -> None:
    assert {name for name, _ in _VARIABLES.values() if name.startswith("REASONBLOCKS_")} == OF_THE_SERVER


# --- docs/server.md

PAGE = (ROOT / "docs/server.md").read_text(encoding="utf-8")


def test_the_page_has_every_setting_and_option() -> None:
    rows = [line for line in PAGE.split("\n## Settings\n")[1].split("\n## ")[0].splitlines() if line.startswith("| ")]
    variables = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row.split("|")[1])}
    options = {name for row in rows for name in re.findall(r"`(--[a-z-]+)`", row.split("|")[2])}
    real = {option for each in COMMANDS["serve"].params for option in each.opts}
    assert variables - OF_UVICORN == {variable for variable, _ in _VARIABLES.values()}
    assert options == real - {"--json"}


def test_the_commands_of_the_page_are_accepted() -> None:
    lines = [line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]
    ours = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("reasonblocks ")]
    assert len(ours) == 7
    for argv in ours:
        parsed(argv)
