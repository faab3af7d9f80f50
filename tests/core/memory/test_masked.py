"""Secrets are masked before a finding is stored, wherever they are, and everything else stays."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest

from reasonblocks import CodebaseMemory
from reasonblocks.backends.local_store.findings import LocalFindings
from reasonblocks.exceptions import ConfigError
from reasonblocks.masking import without_secrets
from reasonblocks.masking._secrets import PIECE
from reasonblocks.types import JSON

USER, HOME = "alice", "/" + "home"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SECRETS = {
    "GitHub": "ghp_" + LETTERS[10:46],
    "GitLab": "glpat-" + LETTERS[5:25],
    "OpenAI": "sk-proj-" + LETTERS[:40],
    "Anthropic": "sk-ant-api03-" + LETTERS[:40],
    "AWS": "AKIA" + "IOSFODNN7ABCDEFG",
    "Google": "AIza" + LETTERS[:35],
    "Slack": "xoxb-" + "1234567890-" + LETTERS[:24],
    "Stripe": "sk_live_" + LETTERS[:24],
    "npm": "npm_" + LETTERS[:36],
    "JWT": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiJhYmMifQ." + LETTERS[:43],
}
"""Keys by vendor, made here, so that none is in this file as a whole."""
HARMLESS = (
    "The parser starts at line 1234 of src/parse.py:17:5; see main.c:10:5, and 12:30:45 is a time.",
    f"Commit 9c74e24b6051e42989b5f6b219203d1d4e6be921 moved {HOME}/{USER}/src/search/a.py to ~{USER}/notes.",
    "Pass `timeout=5` to `connect`; the token budget is 4000, and tests/auth/test_tokens.py covers it.",
    "The digest is e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855.",
    "The server listens on [fe80::1]:8080 and on 127.0.0.1.",
)


@pytest.fixture
def store() -> LocalFindings:
    return LocalFindings()


@pytest.fixture
def memory(store: LocalFindings, tmp_path: Path) -> CodebaseMemory:
    return CodebaseMemory("acme", store=store, root=tmp_path)


def everything(memory: CodebaseMemory) -> str:
    return json.dumps([[one.content, one.file_path, one.finding_type, one.metadata] for one in memory.list_all()])


@pytest.mark.parametrize("vendor", sorted(SECRETS))
def test_a_key_is_masked_in_every_field(memory: CodebaseMemory, vendor: str) -> None:
    key = SECRETS[vendor]
    memory.store(f"The client uses {key} here.", f"conf/{key}/a.py", key[:60], {"key": key, key: [{"deep": key}]})
    assert key[8:30] not in everything(memory)
    assert memory.list_all()[0].content == "The client uses # here."


@pytest.mark.parametrize(
    "text",
    [
        "postgres://app:hunter22@db/shop",
        "DB_PASSWORD=hunter22",
        "curl -u bob:hunter22 https://x.example",
        "password: hunter22",
    ],
)
def test_a_login_is_masked(memory: CodebaseMemory, text: str) -> None:
    memory.store(f"Connect so: {text}")
    assert "hunter22" not in everything(memory)


def test_a_value_that_its_name_announces_is_masked(memory: CodebaseMemory) -> None:
    given: dict[str, JSON] = {
        "db_password": "hunter22",
        "pin": 4711,
        "logins": [{"secret": ["a", ""]}],
        "tokens": 4,
        "mfa_token": None,
    }
    memory.store("The settings.", metadata=given)
    kept = {"db_password": "#", "pin": "#", "logins": [{"secret": ["#", ""]}], "tokens": 4, "mfa_token": None}
    assert memory.list_all()[0].metadata == kept


@pytest.mark.parametrize("text", ["openssl rsa -pass hunter22", "unlock --pass hunter22 -v", "ENV pass hunter22"])
def test_an_option_named_pass_is_masked(memory: CodebaseMemory, text: str) -> None:
    memory.store(text)
    assert memory.list_all()[0].content == text.replace("hunter22", "#")


@pytest.mark.parametrize("text", ["x-token-" * 1_000, "password" + " " * 7_990 + ".", "key" + "\n" * 7_990 + "."])
def test_a_text_without_a_secret_is_masked_in_time(text: str) -> None:
    """Each took a minute or more while the rules had no limits."""
    assert without_secrets(text) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_numbers_hashes_paths_and_accounts_stay(memory: CodebaseMemory, text: str) -> None:
    memory.store(text, "src/auth/secrets/token_store.py")
    (found,) = memory.list_all()
    assert (found.content, found.file_path) == (text, "src/auth/secrets/token_store.py")


def test_a_masked_path_is_found_by_the_path_that_was_given(memory: CodebaseMemory) -> None:
    path = f"conf/{SECRETS['GitHub']}.json"
    memory.store("The settings are here.", path)
    assert memory.coverage_for([path]) == {path: 1}
    assert memory.invalidate([path]) == 1


def test_the_question_is_masked_like_the_findings(memory: CodebaseMemory, store: LocalFindings) -> None:
    asked: list[str] = []
    search = store.search

    class Listening(LocalFindings):
        def search(self, codebase, query, *, top_k, score_threshold):  # type: ignore[no-untyped-def]
            asked.append(query)
            return search(codebase, query, top_k=top_k, score_threshold=score_threshold)

    CodebaseMemory("acme", store=Listening()).recall(f"where is {SECRETS['GitHub']} used")
    assert asked == ["where is # used"]


def test_redact_sees_every_text_first(tmp_path: Path) -> None:
    memory = CodebaseMemory(
        "acme", store=LocalFindings(), root=tmp_path, redact=lambda text: text.replace("Falcon", "[project]")
    )
    memory.store("Falcon is slow.", "falcon/Falcon.py", "of Falcon", {"Falcon": "Falcon"})
    assert "Falcon" not in everything(memory)
    assert [found.content for found in memory.recall("why is Falcon slow")] == ["[project] is slow."]
    assert memory.invalidate(["falcon/Falcon.py"]) == 1


def test_an_error_of_redact_stores_nothing(tmp_path: Path) -> None:
    def broken(text: str) -> str:
        raise RuntimeError("no")

    memory = CodebaseMemory("acme", store=LocalFindings(), root=tmp_path, redact=broken)
    with pytest.raises(RuntimeError, match="no"):
        memory.store("A note.")
    assert memory.list_all() == ()


def test_redact_has_to_return_a_text(tmp_path: Path) -> None:
    wrong = CodebaseMemory("acme", store=LocalFindings(), root=tmp_path, redact=lambda text: 3)  # type: ignore[arg-type, return-value]
    with pytest.raises(ConfigError, match="redact='int': must return a text"):
        wrong.store("A note.")


@pytest.mark.parametrize("vendor", sorted(SECRETS))
def test_no_error_shows_a_secret(memory: CodebaseMemory, vendor: str) -> None:
    key = SECRETS[vendor]
    for given in (
        {"content": key * 420},
        {"content": "x", "file_path": f"{key}\n"},
        {"content": "x", "file_path": f"{key}/{'p' * 600}"},
        {"content": "x", "finding_type": f"{key}\n{key}"},
        {"content": "x", "metadata": {"k": key, "n": object()}},
        {"content": "x", "metadata": key},
    ):
        with pytest.raises(ConfigError) as raised:
            memory.store_many([given])
        assert key[4:14] not in str(raised.value)
        assert key[4:14] not in repr(raised.value.value)
        assert raised.value.__cause__ is None


def test_a_codebase_is_not_named_by_a_secret() -> None:
    with pytest.raises(ConfigError, match="must not contain a secret") as raised:
        CodebaseMemory(f"https://bob:{SECRETS['GitHub']}@git.example/acme", store=LocalFindings())
    assert SECRETS["GitHub"][4:14] not in str(raised.value)


@pytest.mark.parametrize(
    "piece",
    ["apikey_", "password", "/", "sk-", "http://a:", "SG.", "curl -", "zip ", "a.", "-a", "eyJ", "<password ", "'a' "],
)
def test_the_time_of_masking_grows_with_the_text_and_not_with_its_square(piece: str) -> None:
    """Eight times the text took 60 times the time, in minutes."""
    short, long = ((piece * length)[:length] for length in (5_000, 40_000))
    before = process_time()
    without_secrets(short)
    between = process_time()
    without_secrets(long)
    assert process_time() - between < 30 * max(between - before, 0.01)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("if ('zq8Gtr5w' == my_password) {}", "if ('#' == my_password) {}"),
        ('"zq8Gtr5w" !== client.secret', '"#" !== client.secret'),
        ("password !== 'zq8Gtr5w'", "password !== '#'"),
        ("if ('GET' == method) {}", "if ('GET' == method) {}"),
        ("'none' == secret", "'none' == secret"),
    ],
)
def test_a_value_that_a_secret_is_compared_with_is_masked(text: str, masked: str) -> None:
    assert without_secrets(text) == masked


def test_a_token_over_the_border_of_two_pieces_is_masked() -> None:
    token = "AccountKey=" + LETTERS + LETTERS[:24] + "=="
    for before in range(PIECE - 120, PIECE + 1, 8):
        assert LETTERS not in without_secrets("." * before + f" {token} " + "." * 300)


KEY = ("sk-ant-api03-AbCdEf0123456789GhIjKlMnOpQ", "rStUvWxYz-abcdefghijkl_mnopqrstuvwxyz0123456789AA")
SECRET = ("dGhpcyBpcyBhIHNlY3JldCB0aGF0IGlzIGxvbm", "cgZW5vdWdoIHRvIGJlIHdyYXBwZWQgb3ZlciB0d28gbGluZXM=")
WRAPPED = {
    "YAML": "api_key: {}\n  {}\nmode: fast",
    "YAML in quotes": 'api_key: "{}\n    {}"\nmode: fast',
    "YAML, folded": "api_key: >-\n  {}\n  {}\nmode: fast",
    "JSON": '{{"api_key": "{}\n   {}", "mode": "fast"}}',
    "JSON, escaped": '{{"api_key": "{}\\n   {}", "mode": "fast"}}',
    "JSON, cut": '{{"api_key": "{}\n   {}',
    "an e-mail": "Hello,\nmy api_key is {}\n{}\nBye",
    "a quoted e-mail": "> my api_key is {}\n> {}\n> Bye",
    "quoted-printable": "api_key: {}=\n{}\nBye",
    "Windows": "api_key: {}\r\n  {}\r\nmode: fast",
    "a shell": "api_key={}\\\n{}\necho fast",
    "parts of a string": 'api_key = ("{}"\n       "{}")\nmode = "fast"',
    "a sum": 'api_key = "{}" +\n  "{}"\nmode = "fast"',
}


@pytest.mark.parametrize("secret", [KEY, SECRET], ids=["key", "base64"])
@pytest.mark.parametrize("form", WRAPPED)
def test_a_key_over_two_lines_is_masked_as_a_whole(form: str, secret: tuple[str, str]) -> None:
    masked = without_secrets(WRAPPED[form].format(*secret))
    assert [part for part in secret if part[:8] in masked or part[-8:] in masked] == []
    assert ("fast" in WRAPPED[form]) == ("fast" in masked)


@pytest.mark.parametrize("at", [7, 10, 13, 20, 40, 60, 70])
def test_a_key_is_masked_wherever_it_breaks(at: int) -> None:
    whole = "".join(KEY)
    masked = without_secrets(f"I use {whole[:at]}\n  {whole[at:]}\nfor it.")
    assert masked in ("I use #\n  #\nfor it.", "I use #\nfor it.")


def test_a_key_over_three_lines_is_masked_as_a_whole() -> None:
    masked = without_secrets(f"api_key: {KEY[0]}\n  {KEY[1]}\n  {KEY[0][8:]}\nmode: fast")
    assert masked == "api_key: #\n  #\n  #\nmode: fast"


@pytest.mark.parametrize(
    "after",
    [
        "in the file", "password", "mode: fast", "Ubuntu22 is the system.", "test_login_2", "src/auth/token2.py:10",
        "0123456789", "3f2a9c1b7d5e8f60a1b2c3d4e5f60718293a4b5c", "HelloWorld", "getUserDetailsById", "Node18LTS: on",
        "2026-11-28T12:00:00Z started", "python3-config is missing", "- Item1", "Python3Tool()", "AbstractUserFactory",
        "v1.2.3", "# a comment", "https://host/Path1", "x = Y1",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "before", ["api_key: hunter22", "I use sk-ant-api03-AbCdEf0123456789GhIjKlMnOpQ", "password: #"]
)
def test_the_line_after_a_secret_stays_if_it_is_no_part_of_it(before: str, after: str) -> None:
    text = f"{before}\n  {after}\nmore"
    assert without_secrets(text).endswith(f"#\n  {after}\nmore")


def test_a_line_after_a_heading_stays() -> None:
    text = "C#\nNet6Core\n##\nNet6Core"
    assert without_secrets(text) == text
