"""The options that name a server, and what `doctor` finds out about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import HashEmbedder, LocalStore, ReasonBlocks
from reasonblocks.backends.http import Exchange, address_of
from reasonblocks.exceptions import ConfigError
from reasonblocks.util.secret import Secret
from reasonblocks_testing.rb_api import Hang, ScriptedRbApi, Status
from reasonblocks_workbench.cli import main
from reasonblocks_workbench.cli._doctor import examine
from tests.core.http.world import EVALUATE, at, client, gates, run

FORMS = ["", "/", "/v1", "/v1/"]


@pytest.mark.parametrize("end", FORMS)
def test_a_url_may_end_in_a_slash_or_the_version(api: ScriptedRbApi, end: str) -> None:
    assert "unavailable" not in gates(run(client(api, base_url=f"{api.url}{end}", strict=True).session(), 2))


@pytest.mark.parametrize("end", FORMS)
def test_a_path_before_the_version_is_kept(end: str) -> None:
    address = address_of("base_url", f"https://host.example:8443/team/rb{end}", None)
    assert address.route("/health") == "https://host.example:8443/team/rb/v1/health"


def test_an_ipv6_address_is_a_url() -> None:
    assert address_of("base_url", "http://[::1]:8700", None).route("/health") == "http://[::1]:8700/v1/health"


def test_the_environment_names_a_server(api: ScriptedRbApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_BASE_URL", api.url)
    monkeypatch.setenv("REASONBLOCKS_API_KEY", api.key)
    with ReasonBlocks(e_traces_enabled=False) as rb:
        run(rb.session(), 2)
    assert (len(at(api, EVALUATE)), api.events != []) == (2, True)


def test_an_empty_url_is_none_whatever_the_environment_has(api: ScriptedRbApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_BASE_URL", api.url)
    with ReasonBlocks(base_url="") as rb:
        run(rb.session(), 2)
    assert api.requests == []


def test_recorded_runs_are_replayed_here_whatever_the_environment_has(
    api: ScriptedRbApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REASONBLOCKS_BASE_URL", api.url)
    step = {"thought": "I look.", "action": "ls", "action_input": ".", "observation": "a.py"}
    (tmp_path / "runs.jsonl").write_text(json.dumps({"run_id": "r", "steps": [step] * 3}))
    assert main(["replay", str(tmp_path / "runs.jsonl")]) == 0
    assert ("1 run" in capsys.readouterr().out, api.requests) == (True, [])


def test_a_wrong_url_of_the_environment_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONBLOCKS_BASE_URL", "ftp://host")
    with pytest.raises(ConfigError, match=r"^REASONBLOCKS_BASE_URL="):
        ReasonBlocks()


def test_streaming_needs_a_server() -> None:
    with pytest.raises(ConfigError, match="needs a server"):
        ReasonBlocks(live_streaming_enabled=True)


def test_an_embedder_has_no_use_beside_the_servers_store(api: ScriptedRbApi) -> None:
    with pytest.raises(ConfigError, match="has its own embedder"):
        ReasonBlocks(base_url=api.url, embedder=HashEmbedder())


def test_a_profile_that_only_the_server_knows_is_sent(api: ScriptedRbApi) -> None:
    rb = client(api, task_profile="our-team", strict=True)
    run(rb.session(), 2)
    run(rb.session(task_profile="another"), 2)
    assert [received.body["task_profile"] for received in at(api, EVALUATE)] == ["our-team", "another"]


@pytest.mark.parametrize("profile", [5, "", None])
def test_a_profile_is_a_name(api: ScriptedRbApi, profile: Any) -> None:
    with pytest.raises(ConfigError, match="task_profile"):
        client(api, task_profile=profile)


PUBLIC = ["http://reasonblocks.example.com", "http://8.8.8.8:8700"]
PRIVATE = [
    "http://10.0.0.5",
    "http://192.168.1.1:80",
    "http://rb",
    "http://rb.internal",
    "http://localhost",
    "http://[::1]",
]


@pytest.mark.parametrize("url", PUBLIC)
def test_a_public_server_without_tls_is_warned_of_once(url: str, caplog: pytest.LogCaptureFixture) -> None:
    address_of("base_url", url, None)
    address_of("base_url", f"{url}/v1", None)
    assert [record.getMessage() for record in caplog.records] == [
        f"the server {url} is used without TLS over a public network: others can read the key and the agent's texts"
    ]


@pytest.mark.parametrize("url", [*PRIVATE, "https://reasonblocks.example.com"])
def test_others_are_not(url: str, caplog: pytest.LogCaptureFixture) -> None:
    address_of("base_url", url, None)
    assert caplog.records == []


def test_loopback_is_asked_past_a_proxy(api: ScriptedRbApi, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert "unavailable" not in gates(run(client(api, api_key="rbk_scripted_key").session(), 2))


def test_doctor_reports_a_server(api: ScriptedRbApi) -> None:
    found = examine({"REASONBLOCKS_BASE_URL": api.url, "REASONBLOCKS_API_KEY": api.key})
    assert found.problems == ()
    assert found.server["answers"].endswith(" ms")
    assert {name: found.server[name] for name in ("url", "version", "key")} == {
        "url": api.url, "version": "0.1.0", "key": "accepted",
    }  # fmt: skip
    assert [(received.method, received.path) for received in api.requests] == [
        ("GET", "/health"), ("GET", "/monitor/runs"),
    ]  # fmt: skip


def test_doctor_reports_a_refused_key_and_does_not_show_it(api: ScriptedRbApi) -> None:
    found = examine({"REASONBLOCKS_BASE_URL": api.url, "REASONBLOCKS_API_KEY": "rbk_other_hidden"})
    assert found.server["key"] == "refused"
    assert "refuses the key rbk_other_***: HTTP 401" in found.problems[0]
    assert "hidden" not in str(found)


def test_doctor_reports_a_key_that_may_not_read(api: ScriptedRbApi) -> None:
    api.misbehave(Status(code=403), at="/monitor/runs")
    found = examine({"REASONBLOCKS_BASE_URL": api.url, "REASONBLOCKS_API_KEY": api.key})
    assert (found.server["key"], found.problems) == ("accepted; it may not read runs", ())


def test_doctor_reports_a_server_that_is_none(api: ScriptedRbApi) -> None:
    api.misbehave(Status(code=404))
    found = examine({"REASONBLOCKS_BASE_URL": api.url})
    assert "is not a ReasonBlocks server: HTTP 404" in found.problems[0]


def test_doctor_reports_a_dead_server_in_one_line(api: ScriptedRbApi) -> None:
    api.close_port()
    found = examine({"REASONBLOCKS_BASE_URL": api.url})
    assert [problem.startswith(f"the server {api.url} is unavailable: ConnectError") for problem in found.problems] == [
        True
    ]


def test_doctor_waits_only_so_long(api: ScriptedRbApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasonblocks_workbench.cli._doctor.SERVER_SECONDS", 0.2)
    api.misbehave(Hang())
    assert "no answer within" in examine({"REASONBLOCKS_BASE_URL": api.url}).problems[0]


def test_a_store_of_the_callers_stays_open(api: ScriptedRbApi) -> None:
    store = LocalStore()
    client(api, pattern_store=store).close()
    assert len(store) == 0


@pytest.mark.parametrize(
    ("variable", "value"), [("SSL_CERT_FILE", "missing.pem"), ("HTTPS_PROXY", "garbage://x"), ("ALL_PROXY", "x://y:z")]
)
def test_variables_that_httpx_refuses_are_an_error_of_the_server_without_the_key(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match="base_url") as raised:
        Exchange(address_of("base_url", "https://reasonblocks.example.com", Secret("rbk_id_hidden")))
    frames = [frame.frame.f_locals for frame in raised.traceback if "backends" in Path(frame.path).parts]
    assert frames
    assert "hidden" not in repr([list(names.values()) for names in frames])
