"""Every kind of secret that occurs in runs is masked, the words around it stay, and what looks alike stays whole."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonblocks.masking.mask import hidden
from tests.workbench.learning.secrets_in_runs import KINDS, LOOK_ALIKES, plain, shown, told


def test_the_table_is_long() -> None:
    assert len(KINDS) >= 100
    assert len(LOOK_ALIKES) >= 40
    assert all(told(marked) for marked in KINDS.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_is_masked_once_and_what_stands_around_it_stays(kind: str) -> None:
    once = hidden(plain(KINDS[kind]))
    assert once == shown(KINDS[kind])
    assert hidden(once) == once


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_looks_alike_stays(text: str) -> None:
    assert hidden(text) == text


LETTERS = string.ascii_letters + string.digits
RANDOM = st.text(LETTERS + "!@#$%^*+-_/.~?", min_size=14, max_size=40).filter(
    lambda text: text[0] in LETTERS and text[-1] in LETTERS and len(set(text)) > 8 and any(map(str.isdigit, text))
)
NAMES = st.sampled_from(
    ["password", "DB_PASSWORD", "passwd", "pwd", "pass", "secret", "client_secret", "clientSecret", "token", "api_key",
     "apiKey", "API key", "access_token", "auth", "secret_key", "private_key", "credential", "cookie", "session_id",
     "passphrase", "aws_secret_access_key", "x-api-key", "db.password", "пароль"]
)  # fmt: skip
FORMS = st.sampled_from(
    ["{name}={secret}", "{name} = {secret} and more", "{name}: {secret}", "the {name} is {secret}.",
     "{name}='{secret}'",
     '{{"{name}": "{secret}", "a": "b"}}', '{{\\"{name}\\": \\"{secret}\\"}}', '{name} "{secret}"',
     "x=y\\n{name}={secret}\\nmode=fast", "export {name}={secret}; make", "a=b&{name}={secret}&c=d"]
)  # fmt: skip


@given(name=NAMES, form=FORMS, secret=RANDOM)
def test_no_random_secret_after_a_name_of_one_survives(name: str, form: str, secret: str) -> None:
    masked = hidden(form.format(name=name, secret=secret))
    assert secret not in masked
    halves = (secret[: len(secret) // 2], secret[len(secret) // 2 :])
    assert not any(half in masked for half in halves)


PIECES = st.lists(
    st.one_of(
        st.sampled_from([plain(marked) for marked in KINDS.values()] + [*LOOK_ALIKES]),
        st.text(max_size=12),
        st.sampled_from(
            ["password", "=", ": ", '"', "'", "\\", "\n", "{", "}", "Ann", "LEE", "/home/", "@", "-p ", "is "]
        ),
    ),
    max_size=6,
)


@given(pieces=PIECES, between=st.sampled_from(["", " ", "\n", "\\n"]))
def test_masking_twice_is_masking_once(pieces: list[str], between: str) -> None:
    once = hidden(between.join(pieces))
    assert hidden(once) == once
