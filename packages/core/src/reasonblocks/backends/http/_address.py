"""Validates the URL of a server, and describes the server and its key without showing secrets."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from ...exceptions import BadAnswer, ConfigError
from ...util.secret import KEY_RULE, Secret, describe_key, is_key, mask_key, shown_url

logger = logging.getLogger("reasonblocks")

API = "/v1"
"""The prefix of every route; a URL may end with it."""
LOCAL_NAMES = (".local", ".internal", ".lan", ".home.arpa")
"""Endings of names that are resolved only inside a network, like names without a dot."""

_warned: set[str] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server: its URL without `API`, and the key. `loopback` connections never go through a proxy."""

    url: str
    key: Secret | None
    loopback: bool
    secure: bool
    """True with TLS."""

    def route(self, path: str) -> str:
        """Return the URL of a route, such as "/monitors/evaluate"."""
        return f"{self.url}{API}{path}"

    def hide(self, text: str) -> str:
        """Return a text without the key."""
        return text if self.key is None else text.replace(self.key.reveal(), "***")

    def without_key(self, exc: BadAnswer) -> BadAnswer:
        """Return the error; without the key, if the server has put it into its answer."""
        shown = repr(exc.value)
        value = exc.value if self.hide(shown) == shown else self.hide(shown)
        return BadAnswer(self.hide(exc.source), value, self.hide(exc.rule))

    @property
    def shown(self) -> str:
        return f"the server {self.url}"

    @property
    def shown_key(self) -> str:
        return "no key" if self.key is None else f"the key {mask_key(self.key)}"


def address_of(name: str, url: object, key: Secret | None) -> Address:
    """Return the validated address. Raises `ConfigError` that names the option `name`; no error shows a secret."""
    rule = "must be the URL of a server, such as https://reasonblocks.example.com or http://127.0.0.1:8700"
    if not isinstance(url, str) or not is_key(url) or " " in url:  # a URL is made of the same characters as a key
        raise ConfigError(name, shown_url(url), rule)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(name, shown_url(url), rule) from None
    if not host or parts.scheme not in ("http", "https"):
        raise ConfigError(name, shown_url(url), rule)
    if parts.username is not None or parts.password is not None:
        raise ConfigError(name, shown_url(url), "must not contain a user or a password: pass the key as api_key")
    if "?" in url or "#" in url:
        raise ConfigError(name, shown_url(url), "must not contain a query or a fragment")
    netloc = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/").removesuffix(API).rstrip("/")
    address = Address(
        url=f"{parts.scheme}://{netloc}{'' if port is None else f':{port}'}{path}",
        key=key,
        loopback=is_loopback(host),
        secure=parts.scheme == "https",
    )
    if not address.secure and not (address.loopback or _is_private(host)):
        _warn_of_plain_text(address)
    return address


def key_of(name: str, value: object) -> Secret | None:
    """Return the key, None for None. Raises `ConfigError`, which does not show it."""
    if value is None:
        return None
    if not isinstance(value, str) or not is_key(value):
        raise ConfigError(name, describe_key(value), KEY_RULE)
    return Secret(value)


def is_loopback(host: str) -> bool:
    """Return True for a host that is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_private(host: str) -> bool:
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(LOCAL_NAMES)


def _warn_of_plain_text(address: Address) -> None:
    """Warn once a process and server."""
    if address.url not in _warned:
        _warned.add(address.url)
        text = "%s is used without TLS over a public network: others can read the key and the agent's texts"
        logger.warning(text, address.shown)
