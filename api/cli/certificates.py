"""`frontage certificate …`: shows a domain's certificate and the CA's limits, renews and revokes by hand.

A monitor does the work; these commands only store the request.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.certificate_replacement import list_, read_file, replace
from api.cli.domain_names import name_of
from api.cli.printing import AlwaysJson, AsJson, make_console, print_json, print_result

if TYPE_CHECKING:
    from rich.table import Table

    from api.cli.services import CommandServices
    from api.notices import Notice
    from api.services.operator_domains import DescribedCertificate
    from common.db.ca_ledger import LedgerCount, Limits
    from common.db.certificates import InService
    from common.db.issuance_progress import IssuanceProgress
    from common.db.orders import OrderState
    from common.db.own_certificates import CertificateRequest, OwnCertificate
    from common.db.revocations import RevocationState

app = typer.Typer(help="Certificates: how they stand, renewed and revoked by hand.", no_args_is_help=True)

app.command("list")(list_)
app.command()(replace)

Domain = Annotated[str, typer.Argument(metavar="DOMAIN", help="The host name, as it is enrolled.")]

_FOLLOW_SECONDS = 5.0
_ROLLOVER_SECONDS = 0.5


class Reason(StrEnum):
    """As RFC 5280 §5.3.1 names them."""

    UNSPECIFIED = "unspecified"
    KEY_COMPROMISE = "keyCompromise"
    AFFILIATION_CHANGED = "affiliationChanged"
    SUPERSEDED = "superseded"
    CESSATION_OF_OPERATION = "cessationOfOperation"


@app.command()
def show(domain: Domain, _: AlwaysJson = False) -> None:
    """Print a domain's certificate, where its order stands, and what became of revoked ones."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name = name_of(domain)

    async def work(services: CommandServices) -> DescribedCertificate:
        return await services.domains.describe_certificate(OPERATOR, name)

    found = run_with_services(work)
    certificate = found.in_service and _certificate(found.in_service, found.chain or "")
    print_json(
        {"domain": name.text, "certificate": certificate, "own": found.own and _own(found.own)}
        | (_shown(found.order) if found.order else {})
        | {"revocations": [_revocation(each) for each in found.revocations]}
    )


@app.command()
def renew(domain: Domain, as_json: AsJson = False) -> None:
    """Have the certificate renewed now; the old one serves until the new one is live.

    The output says how long a limit of the CA delays it.
    """
    from api.cli.database import warn_without_issuer
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name = name_of(domain)

    async def work(services: CommandServices) -> IssuanceProgress:
        await services.operations.renew(OPERATOR, name)
        async with services.database.connection() as connection:
            await warn_without_issuer(connection)
        return await services.installation.read_progress()

    found = run_with_services(work)
    words = f"{name} is being renewed: `frontage certificate show {name}` prints its state"
    if found.ends_at is not None:
        words += f"\n{found.notice} `frontage certificate progress --follow` shows how they go on"
    expected = {} if found.ends_at is None else {"waiting": found.waiting, "expectedBy": _moment(found.ends_at)}
    print_result({"domain": name.text, "renewing": True} | expected, words, as_json=as_json)


@app.command()
def revoke(
    domain: Domain,
    reason: Annotated[Reason, typer.Option(help="The reason that is sent to the authority.")] = Reason.UNSPECIFIED,
    at_once: Annotated[
        bool, typer.Option("--at-once", help="Revoke now, although it is served until another is issued.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Revoke the certificate, served or kept; in place of one that serves another is issued first, with a new key."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR
    from common.db.revocations import REASONS

    name = name_of(domain)

    async def work(services: CommandServices) -> None:
        await services.operations.revoke(OPERATOR, name, REASONS[reason.value], at_once=at_once)

    run_with_services(work)
    if at_once:
        words = f"{name}'s certificate is being revoked now; where it is served, another is issued as soon as it can be"
    else:
        words = f"{name}'s certificate is being revoked; where it is served, another takes its place first"
    print_result({"domain": name.text, "revoking": True, "reason": reason.value}, words, as_json=as_json)


@app.command("roll-account-key")
def roll_account_key(
    cancel: Annotated[bool, typer.Option("--cancel", help="Withdraw the request, before any CA was asked.")] = False,
    as_json: AsJson = False,
) -> None:
    """Change the key of the ACME accounts at every CA, as after it leaked, and wait for that.

    Orders wait meanwhile, for some seconds. Ctrl-C ends the command alone: a monitor does the work.
    """
    import asyncio

    from api.cli.database import warn_without_issuer
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> bool:
        if cancel:
            await services.account_key.cancel(OPERATOR)
            return False
        await services.account_key.request(OPERATOR)
        async with services.database.connection() as connection:
            await warn_without_issuer(connection)
        is_requested, shown = True, None
        while is_requested and not as_json:
            await asyncio.sleep(_ROLLOVER_SECONDS)
            is_requested, error = await services.account_key.look(OPERATOR)
            if error and error != shown:
                typer.echo(f"it is tried again: {error}", err=True)
            shown = error
        return is_requested

    is_changing = run_with_services(work)
    words = "the request is withdrawn" if cancel else "every CA has taken the new key of its account"
    print_result({"changing": is_changing}, words, as_json=as_json)


@app.command()
def bring(
    domain: Domain,
    certificate: Annotated[Path, typer.Option(metavar="FILE", help="The chain, PEM.")],
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its private key, PEM; without one, that of the open request.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve a domain with a certificate of its partner's; on its last day ours takes over."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name, chain, secret = name_of(domain), read_file(certificate), None if key is None else read_file(key)

    async def work(services: CommandServices) -> list[Notice]:
        holder = await services.operations.holder(OPERATOR, name)
        return await services.own_certificates.bring(holder, name, chain, secret)

    notices = run_with_services(work)
    words = " ".join([f"{name} is served with this certificate, until its last day.", *(each.hint for each in notices)])
    print_result({"domain": name.text, "source": "own"}, words, as_json=as_json)


@app.command()
def request(domain: Domain, as_json: AsJson = False) -> None:
    """Print a request for the partner's authority to sign; its key stays here. The open one, where there is one."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name = name_of(domain)

    async def work(services: CommandServices) -> CertificateRequest:
        return await services.own_certificates.request(await services.operations.holder(OPERATOR, name), name)

    found = run_with_services(work)
    print_result({"domain": name.text, "request": found.request}, found.request.rstrip(), as_json=as_json)


@app.command("use-ours")
def use_ours(domain: Domain, as_json: AsJson = False) -> None:
    """Serve a domain with our certificate again, in place of its partner's, and forget an open request."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    name = name_of(domain)

    async def work(services: CommandServices) -> list[Notice]:
        return await services.own_certificates.remove(await services.operations.holder(OPERATOR, name), name)

    notices = run_with_services(work)
    words = " ".join([f"{name} is served with our certificate.", *(each.hint for each in notices)])
    print_result({"domain": name.text, "source": "ours"}, words, as_json=as_json)


@app.command()
def limits(as_json: AsJson = False) -> None:
    """Print how much of the certificate authorities' limits is used, and when there is room again."""
    from api.cli.services import run_with_services

    async def work(services: CommandServices) -> tuple[list[LedgerCount], Limits]:
        return await services.installation.list_usage()

    standings, allowed = run_with_services(work)
    if as_json:
        print_json([_standing(each, allowed) for each in standings])
    elif not standings:
        typer.echo("nothing counts now: no order was sent to an authority with limits")
    else:
        console = make_console()
        for issuer in dict.fromkeys(each.issuer for each in standings):
            typer.echo(f"\n{issuer}")
            console.print(_table([each for each in standings if each.issuer == issuer], allowed))
        typer.echo(
            f"as of {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; windows slide: a slot is free when what took it leaves"
        )


@app.command()
def progress(
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on, a line for each change, until nothing waits.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print how many orders wait for the certificate authorities' limits, and about when all of them are placed."""
    from api.cli.services import run_with_services

    async def work(services: CommandServices) -> IssuanceProgress:
        return await services.installation.read_progress()

    shown = None
    while True:
        found = run_with_services(work)
        if (line := _progress(found)) != shown:
            print_result(_progress_document(found), line, as_json=as_json)
            shown = line
        if not follow or not (found.waiting or found.due):
            return
        time.sleep(_FOLLOW_SECONDS)


# Parts ---------------------------------------------------------------------------------------------------


def _certificate(in_service: InService, chain: str) -> dict[str, Any]:
    """`source` is ours or a CA; `issuer`, the authority's own name, and the serial number are read from the chain."""
    from cryptography import x509

    try:
        leaf = x509.load_pem_x509_certificate(chain.encode("ascii"))
    except ValueError:
        serial, issuer = None, None
    else:
        serial, issuer = f"{leaf.serial_number:x}", leaf.issuer.rfc4514_string()
    return {
        "serial": serial,
        "issuer": issuer,
        "source": in_service.issuer,
        "notBefore": _moment(in_service.not_before),
        "notAfter": _moment(in_service.not_after),
        "issuedAt": _moment(in_service.issued_at),
        "liveAt": _moment(in_service.live_at),
    }


def _own(certificate: OwnCertificate) -> dict[str, Any]:
    return {
        "serial": certificate.serial,
        "issuer": certificate.issuer,
        "names": list(certificate.names),
        "notBefore": _moment(certificate.not_before),
        "notAfter": _moment(certificate.not_after),
        "storedAt": _moment(certificate.stored_at),
    }


def _shown(state: OrderState) -> dict[str, Any]:
    return {
        "state": state.state,
        "kind": state.kind,
        "attempts": state.attempts,
        "lastError": state.last_error,
        "dueAt": _moment(state.due_at),
        "renewAt": _moment(state.renew_at),
        "requestedAt": _moment(state.requested_at),
        "finishedAt": _moment(state.finished_at),
        "failingSince": _moment(state.failing_since),
        "departedAt": _moment(state.departed_at),
        "seconds": dict(state.phases),
    }


def _progress(found: IssuanceProgress) -> str:
    return (
        f"{found.ordered_last_hour:,} ordered in the last hour, {found.ordered_last_day:,} in the last day;"
        f" {found.due:,} due now; {found.notice or 'none waits for a limit'}"
    )


def _progress_document(found: IssuanceProgress) -> dict[str, Any]:
    return {
        "waiting": found.waiting,
        "due": found.due,
        "orderedLastHour": found.ordered_last_hour,
        "orderedLastDay": found.ordered_last_day,
        "anHour": found.an_hour,
        "endsAt": _moment(found.ends_at),
    }


def _revocation(each: RevocationState) -> dict[str, Any]:
    from common.db.revocations import REASONS

    names = {number: name for name, number in REASONS.items()}
    return {
        "reason": names.get(each.reason, str(each.reason)),
        "requestedAt": _moment(each.requested_at),
        "revokedAt": _moment(each.revoked_at),
        "lastError": each.last_error,
    }


def _standing(each: LedgerCount, allowed: Limits) -> dict[str, Any]:
    most = getattr(allowed, each.limit)
    return {
        "issuer": each.issuer,
        "limit": each.limit,
        "subject": each.subject,
        "used": each.used,
        "most": most,
        "nextSlotAt": _moment(each.frees_at if each.used >= most else None),
    }


def _table(standings: list[LedgerCount], allowed: Limits) -> Table:
    """Of one authority."""
    from rich import box
    from rich.table import Table

    from common.db.ca_ledger import LIMIT_DESCRIPTIONS

    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("limit", "of", "used", "next slot"):
        table.add_column(heading, justify="right" if heading == "used" else "left", overflow="fold")
    for each in standings:
        most = getattr(allowed, each.limit)
        is_full = each.used >= most
        table.add_row(
            LIMIT_DESCRIPTIONS[each.limit],
            each.subject or "the account",
            f"{each.used} / {most}",
            f"{each.frees_at:%Y-%m-%d %H:%M} UTC" if is_full else "now",
            style="red" if is_full else "",
        )
    return table


def _moment(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None
