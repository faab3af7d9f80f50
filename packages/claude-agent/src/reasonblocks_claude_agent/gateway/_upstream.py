"""Finds the CLI's model provider: its address, the proxy on the way, and the certificates to trust."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # typeshed lacks it

from reasonblocks.exceptions import ConfigError

FIRST_PARTY = "https://api.anthropic.com"
ELSEWHERE = (
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_GATEWAY",
    "ANTHROPIC_UNIX_SOCKET",
)
"""If one of these is set, the CLI does not use `ANTHROPIC_BASE_URL`."""
OFF = frozenset({"", "0", "false", "no", "off"})
HERE = "127.0.0.1"


def refuse_elsewhere(env: Mapping[str, str]) -> None:
    """Raise `ConfigError` if the CLI's requests would not go through a gateway."""
    for name in ELSEWHERE:
        if env.get(name, "").strip().lower() not in OFF:
            raise ConfigError("mode", "gateway", f"not with {name}={env[name]!r}: use mode='hooks'")


def address(env: Mapping[str, str]) -> str:
    """Return the provider's base URL, without a slash at its end."""
    return (env.get("ANTHROPIC_BASE_URL") or FIRST_PARTY).rstrip("/")


def proxy(env: Mapping[str, str]) -> str | None:
    """Return the proxy between us and the provider, as the CLI would use it."""
    url = urlsplit(address(env))
    if proxy_bypass_environment(url.netloc, {"no": _either(env, "no_proxy")}):
        return None
    return _either(env, f"{url.scheme}_proxy") or _either(env, "all_proxy") or None


def environment(env: Mapping[str, str], gateway: str) -> dict[str, str]:
    """Return the variables that make the CLI send its requests to the gateway, and directly.

    Behind it the CLI behaves as with the provider itself: it recognises its first-party provider by the address.
    """
    variables = {"ANTHROPIC_BASE_URL": gateway}
    if any(_either(env, name) for name in ("http_proxy", "https_proxy", "all_proxy")):
        spared = ",".join(filter(None, (_either(env, "no_proxy"), HERE)))
        variables |= {"NO_PROXY": spared, "no_proxy": spared}
    if urlsplit(address(env)).hostname == urlsplit(FIRST_PARTY).hostname:
        variables["_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"] = env.get("_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL", "1")
    return variables


def trust(env: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS context that the CLI's environment describes, None if nothing is encrypted. Reads files.

    Raises `OSError` and `ssl.SSLError` for files that are missing or wrong.
    """
    if not address(env).startswith("https:"):
        return None
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    if extra := env.get("NODE_EXTRA_CA_CERTS"):
        context.load_verify_locations(extra)
    if certificate := env.get("CLAUDE_CODE_CLIENT_CERT"):
        key = env.get("CLAUDE_CODE_CLIENT_KEY")
        context.load_cert_chain(certificate, key, env.get("CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"))
    return context


def _either(env: Mapping[str, str], name: str) -> str:
    return env.get(name) or env.get(name.upper()) or ""
