"""The domain under which an installation's own edges serve its management API and dashboard.

It is the host of `PUBLIC_URL`, which no application can enrol by itself. `frontage domain publish-api` enrols it
in Secure for an application of the operator's; for this name alone, an edge forwards to the API's own listener.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from common.errors import InvalidName
from common.host_ports import HostPort
from common.ip_addresses import parse_address
from common.names import parse_host_name
from common.settings import Settings

_LOOPBACK = {4: "127.0.0.1", 6: "::1"}


def api_domain(settings: Settings) -> str | None:
    """Return the host of `PUBLIC_URL` in canonical form.

    None without a `PUBLIC_URL`, or where its host is an address.
    """
    host = urlsplit(settings.public_url or "").hostname
    try:
        return parse_host_name(host) if host else None
    except InvalidName:
        return None


def dialled_api(settings: Settings) -> HostPort:
    """Return the address at which a process of this machine connects to the API."""
    host, port = settings.api_listen
    address = parse_address(host)
    if address is not None and address.is_unspecified:
        return HostPort(_LOOPBACK[address.version], port)
    return HostPort("127.0.0.1" if host == "localhost" else host, port)
