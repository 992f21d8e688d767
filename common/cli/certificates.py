"""`frontage certificate …`: shows a domain's certificate and the CA's limits, renews and revokes by hand.

A monitor does the work; these commands only store the request.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from common.cli.printing import AlwaysJson, AsJson, make_console, print_json, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from rich.table import Table

    from common.db.ca_ledger import LedgerCount, Limits
    from common.db.orders import OrderState
    from common.db.revocations import RevocationState
    from common.db.session import Connection
    from common.secrets import Keyring

app = typer.Typer(help="Certificates: how they stand, renewed and revoked by hand.", no_args_is_help=True)

Domain = Annotated[str, typer.Argument(metavar="DOMAIN", help="The host name, as it is enrolled.")]


class Reason(StrEnum):
    """As RFC 5280 §5.3.1 names them."""

    UNSPECIFIED = "unspecified"
    KEY_COMPROMISE = "keyCompromise"
    AFFILIATION_CHANGED = "affiliationChanged"
    SUPERSEDED = "superseded"
    CESSATION_OF_OPERATION = "cessationOfOperation"


@app.command()
def show(domain: Domain, _: AlwaysJson = False) -> None:
    """Print where the order of a domain's certificate stands, and what became of those that were revoked."""
    from common.cli.database import run_in_database
    from common.db import orders, revocations

    name = _name(domain)

    async def work(connection: Connection, _: Keyring) -> tuple[OrderState | None, list[RevocationState]]:
        return await orders.describe(connection, name), await revocations.describe(connection, name)

    state, revoked = run_in_database(work)
    if state is None and not revoked:
        raise _unknown(name)
    shown = (
        {"domain": name} | (_shown(state) if state else {}) | {"revocations": [_revocation(each) for each in revoked]}
    )
    print_json(shown)


@app.command()
def renew(domain: Domain, as_json: AsJson = False) -> None:
    """Have the certificate renewed now; the old one serves until the new one is live."""
    from common.cli.database import run_in_database, warn_without_issuer
    from common.db import orders

    name = _name(domain)

    async def work(connection: Connection, _: Keyring) -> None:
        await orders.request_renewal(connection, name, await _owner(connection, name))
        await warn_without_issuer(connection)

    run_in_database(work)
    words = f"{name} is being renewed: `frontage certificate show {name}` prints its state"
    print_result({"domain": name, "renewing": True}, words, as_json=as_json)


@app.command()
def revoke(
    domain: Domain,
    reason: Annotated[Reason, typer.Option(help="The reason that is sent to the authority.")] = Reason.UNSPECIFIED,
    as_json: AsJson = False,
) -> None:
    """Revoke the certificate, served or kept; in place of one that serves another is issued first, with a new key."""
    from common.cli.database import run_in_database
    from common.db import orders
    from common.db.revocations import REASONS

    name = _name(domain)

    async def work(connection: Connection, _: Keyring) -> bool:
        owner = await _owner(connection, name, released=True)
        return await orders.request_replacement(connection, name, owner, REASONS[reason.value])

    if not run_in_database(work):
        raise OperatorError(f"{name} has no valid certificate that is not being revoked already")
    words = f"{name}'s certificate is being revoked; where it is served, another takes its place first"
    print_result({"domain": name, "revoking": True, "reason": reason.value}, words, as_json=as_json)


@app.command()
def limits(as_json: AsJson = False) -> None:
    """Print how much of the certificate authorities' limits is used, and when there is room again."""
    import os

    from common.cli.database import run_in_database
    from common.db import ca_ledger
    from common.settings import load

    settings = load(os.environ)
    allowed = ca_ledger.Limits.of(settings)

    async def work(connection: Connection, _: Keyring) -> list[LedgerCount]:
        return await ca_ledger.standings(connection)

    standings = run_in_database(work)
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


# Parts ---------------------------------------------------------------------------------------------------


def _name(domain: str) -> str:
    from common.errors import InvalidName
    from common.names import parse_domain

    try:
        return parse_domain(domain).text
    except InvalidName as error:
        raise OperatorError(f"{domain!r} is no domain name: {error}") from error


async def _owner(connection: Connection, domain: str, *, released: bool = False) -> str:
    """The application that has the domain, or whose certificate for it is kept."""
    from common.db import certificates, domains

    held = await domains.find(connection, domain)
    if held:
        return held[0].application_id
    kept = await certificates.last_released(connection, domain) if released else None
    if kept is None:
        raise _unknown(domain)
    return kept


def _unknown(domain: str) -> OperatorError:
    return OperatorError(f"{domain} is not enrolled here")


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

    from common.db.ca_ledger import WORDS

    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("limit", "of", "used", "next slot"):
        table.add_column(heading, justify="right" if heading == "used" else "left", overflow="fold")
    for each in standings:
        most = getattr(allowed, each.limit)
        is_full = each.used >= most
        table.add_row(
            WORDS[each.limit],
            each.subject or "the account",
            f"{each.used} / {most}",
            f"{each.frees_at:%Y-%m-%d %H:%M} UTC" if is_full else "now",
            style="red" if is_full else "",
        )
    return table


def _moment(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None
