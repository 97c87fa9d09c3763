"""Who tries a secret: an address that cannot be chosen freely, and a browser that is known.

Boundary: reads addresses, headers and a signed cookie that opens nothing. ``X-Forwarded-For`` is
believed of a configured proxy alone. The server under Datasette believes it of this machine unless
it is configured otherwise, so what it made of that header counts no more than the header.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any

from ..configuration import UNIX, Proxies
from ..permissions.session_cookies import identity
from ..requests import cookies
from ..vaults.registry import vaults_of
from .attempts import Client

if TYPE_CHECKING:
    from ..vaults.vault import Vault

NAMESPACE = "hybrid-known"
KNOWN_DAYS = 180
BROWSER_BYTES = 16
IPV6_BITS = 64  # a household has all addresses of such a network
FORWARDED = "forwarded by a proxy that is not configured"
TRUSTED_BY_SERVER = "FORWARDED_ALLOW_IPS"  # uvicorn's own variable, and what it is without
TRUSTED_WITHOUT = "127.0.0.1"
SHOWN = 64  # characters of what is no address


def client_of(datasette: Any, request: Any, vault: Vault) -> Client:
    """Whose attempt a request is. An actor who is signed in is counted apart from others there."""
    where = address_of(request.scope, vaults_of(datasette).proxies)
    actor = identity(request.actor)
    name = where if actor is None else f"{where} {actor}"
    return Client(name, _browser(datasette, request, vault))


def address_of(scope: Mapping[str, Any], proxies: Proxies) -> str:
    """The network that a request comes from, as far as that is known; some text in any case."""
    peer = scope.get("client") or (None, None)
    host, port = peer[0], peer[1] if len(peer) > 1 else None
    forwarded = _forwarded(scope)
    named = {f"{host}:{port}", f"[{host}]:{port}"} & {*forwarded}
    if (
        host is not None and forwarded and (named or not port)
    ):  # by the server below, which names one of those whom the header names
        senders = os.environ.get(TRUSTED_BY_SERVER, TRUSTED_WITHOUT).split(",")
        if not all(_is_proxy(one.strip(), proxies) for one in senders):
            return FORWARDED
    elif not forwarded or not _is_proxy(host or UNIX, proxies):
        return _network(host or UNIX)
    for one in reversed(forwarded):
        if not _is_proxy(one, proxies):
            return _network(one)
    return _network(forwarded[0])


def _forwarded(scope: Mapping[str, Any]) -> Sequence[str]:
    values = [value for name, value in scope["headers"] if name.lower() == b"x-forwarded-for"]
    entries = b",".join(values).decode("latin-1").split(",")
    return [one.strip() for one in entries if one.strip()]


def _is_proxy(host: str, proxies: Proxies) -> bool:
    if host == UNIX:
        return UNIX in proxies
    found = _parsed(host)
    return found is not None and any(found in one for one in proxies if one != UNIX)


def _network(host: str) -> str:
    """What is counted as one: an address, of the sixth version the network it is in."""
    found = _parsed(host)
    if found is None:
        return host[:SHOWN]
    if isinstance(found, IPv6Address):
        return str(ip_network((found.packed, IPV6_BITS), strict=False))
    return str(found)


def _parsed(host: str) -> IPv4Address | IPv6Address | None:
    """An address, with a port (``1.2.3.4:5``, ``[::1]:5``) or without."""
    bare = host[1:].partition("]")[0] if host.startswith("[") else host
    bare = bare.partition(":")[0] if bare.count(":") == 1 else bare
    try:
        found = ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(found, IPv6Address) and found.ipv4_mapped) or found


# -- browsers that unlocked before ------------------------------------------------------


def remember(datasette: Any, request: Any, response: Any, vault: Vault) -> None:
    """Know this browser again: it unlocked the vault, so its attempts come first from now on."""
    browser = _browser(datasette, request, vault) or secrets.token_urlsafe(BROWSER_BYTES)
    lifetime = KNOWN_DAYS * 86_400
    value = {"database": vault.database, "browser": browser, "until": time.time() + lifetime}
    signed = datasette.sign(value, NAMESPACE)
    cookies.give(datasette, request, response, _cookie_name(vault), signed, lifetime)


def _browser(datasette: Any, request: Any, vault: Vault) -> str | None:
    name = _cookie_name(vault)
    value = cookies.signed(datasette, request.cookies, name, NAMESPACE, vault.database)
    until, browser = value.get("until"), value.get("browser")
    fresh = isinstance(until, int | float) and time.time() < until
    return browser if fresh and isinstance(browser, str) else None


def _cookie_name(vault: Vault) -> str:
    return cookies.cookie_name("ds_hybrid_known", vault.database)
