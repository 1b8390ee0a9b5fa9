"""Names of machines, as requests and command lines have them."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

__all__ = ["ANYWHERE", "host_of", "is_this_machine"]

# Addresses that stand for all of this machine's.
ANYWHERE = ("0.0.0.0", "::")


def host_of(header: str) -> str:
    """Return the name in a Host header, without the port, in lower case; "": there is none.

    Examples
    --------
    >>> host_of("Example.org:8000"), host_of("[::1]:80")
    ('example.org', '::1')
    """
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


def is_this_machine(host: str) -> bool:
    """Say whether a name is one of this machine that only this machine itself can use.

    Examples
    --------
    >>> is_this_machine("localhost"), is_this_machine("127.0.0.1"), is_this_machine("a.org")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
