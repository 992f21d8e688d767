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
    from common.db.session import Connection
    from common.names import DomainName
    from common.secrets import Keyring
    from common.settings import HostPort, Settings


def publish_api(
    application_id: Annotated[str, typer.Argument(metavar="ID", help="An application of your own, which holds it.")],
    as_json: AsJson = False,
) -> None:
    """Serve the API and the dashboard at PUBLIC_URL through the edges, with a certificate.

    Each edge forwards to the API of its own machine.
    """
    from api.cli.database import run_in_database
    from common.settings import load

    settings = load(os.environ)
    name, api = _domain(settings), _dialled(settings)

    async def work(connection: Connection, _: Keyring) -> str:
        return await _enrol(connection, name, application_id, f"http://{api}")

    target = run_in_database(work)
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
    """Where edges find the API. Raises: OperatorError."""
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


async def _enrol(connection: Connection, name: DomainName, application_id: str, url: str) -> str:
    """Enrol the name, and return the one that its DNS has to lead to. Raises: `OperatorError`."""
    from common.db import applications, certificates, domains, ownership
    from common.enrolment.ownership import OwnershipClaim, OwnershipEvidence, OwnershipVerdict, OwnNames, judge_claim

    application = await applications.get_application(connection, application_id)
    if application is None:
        raise OperatorError(f"there is no application {application_id}: `frontage app list` prints them")
    await certificates.lock_domain(connection, name.text)
    standing = await ownership.find_standing(connection, name, application_id)
    own_names = OwnNames(frozenset())  # this one is ours, and enrolled for that
    verdict = judge_claim(name, application_id, standing, OwnershipEvidence(OwnershipClaim.OPERATOR), own_names)
    if verdict is OwnershipVerdict.HELD:
        raise OperatorError(f"{name} is held by application {standing.holder}: `frontage domain release {name}` first")
    if verdict is OwnershipVerdict.BLOCKED:
        raise OperatorError(f"{name} is blocked: `frontage domain unblock {name}` first")
    if verdict is not OwnershipVerdict.ENROL:
        raise OperatorError(f"{name} is an application's cname target: give PUBLIC_URL another host")
    try:
        await domains.secure(connection, name.text, application_id, url, None, OwnershipClaim.OPERATOR)
    except domains.EnrolledTooOften as error:
        raise OperatorError(f"{name} was enrolled five times in 24 hours: try again tomorrow") from error
    return application.secure_cname_target or application.cname_target
