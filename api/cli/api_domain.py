"""`frontage domain publish-api`: the management API and the dashboard under the operator's own domain, by our edges."""

from __future__ import annotations

import os
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from api.cli.printing import AsJson, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from api.cli.services import CommandServices
    from common.host_ports import HostPort
    from common.names import DomainName
    from common.settings import Settings


def publish_api(
    application_id: Annotated[str, typer.Argument(metavar="ID", help="An application of your own, which holds it.")],
    as_json: AsJson = False,
) -> None:
    """Serve the API and the dashboard at PUBLIC_URL through the edges, with a certificate.

    Each edge forwards to the API of its own machine.
    """
    from api.cli.services import run_with_services
    from api.rights import OPERATOR
    from common.settings import load

    settings = load(os.environ)
    name, api = _domain(settings), _dialled(settings)

    async def work(services: CommandServices) -> str:
        application = await services.application(application_id)
        await services.operations.enrol_api(OPERATOR, application, name, f"http://{api}")
        return application.secure_cname_target or application.cname_target

    target = run_with_services(work)
    print_result(
        {
            "domain": name.text,
            "applicationId": application_id,
            "applicationUrl": f"http://{api}",
            "cnameTarget": target,
        },
        f"{name} is enrolled: have its DNS lead to {target}; a certificate is ordered, and edges forward to {api}",
        as_json=as_json,
    )


def _domain(settings: Settings) -> DomainName:
    """Return the domain of PUBLIC_URL. Raises: `OperatorError`."""
    from common.api_domain import api_domain
    from common.names import parse_domain

    host, url = api_domain(settings), urlsplit(settings.public_url or "")
    if host is None or url.scheme != "https" or url.path not in ("", "/"):
        raise OperatorError(
            "FRONTAGE_PUBLIC_URL has to be https:// and a domain of yours, without a path: "
            "set it for every role to where partners and users will find the API"
        )
    return parse_domain(host)


def _dialled(settings: Settings) -> HostPort:
    """Return where edges find the API. Raises: `OperatorError`."""
    from api.rules.plain_text import is_loopback
    from common.api_domain import dialled_api

    api = dialled_api(settings)
    if not is_loopback(api.host):
        raise OperatorError(
            f"the API listens on {settings.api_listen}, so secrets would cross a network in plain text: "
            "run an API on each edge's machine, with FRONTAGE_API_LISTEN on loopback"
        )
    if not any(ip_address(api.host) in network for network in settings.api_trusted_proxies):
        raise OperatorError(
            "the API would take every client for one, the edge: "
            f"set FRONTAGE_API_TRUSTED_PROXIES={api.host} for the API, so that limits are by client address"
        )
    return api
