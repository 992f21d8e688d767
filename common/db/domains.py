"""Domains as rows: a customer's host name under a product, and the application it belongs to.

Owns the SQL of ``domains``. What leads to a certificate and what releases it is
`common.db.orders`' and `common.db.certificates`' business; both are called here, in the same transaction.

Rules
    both products on one name belong to one application; which one may have it, `common.enrolment.ownership` decides
    a name is enrolled and removed only under `certificates.lock_domain`, so that of many at once one succeeds: the
    caller of an enrolment takes the lock and checks under it whose the name is; `remove` takes it itself
    redirects are set one at a time, each against all others (`lock_redirects`), so that no two close a loop together
    an application's first enrolment of a name is free; after it, `MOST_AGAIN` in any 24 hours
    root-path-access paths given with a domain, even none, win over the application's

Functions that write need a transaction; the caller opens it.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any, Literal

from asyncpg import Connection, Record

from common.db import certificates, enrolments, locks, orders, outcomes, ownership, preparations
from common.db.preparations import Wanted
from common.domain_settings import SETTINGS, DomainSettings
from common.enrolment.ownership import OwnershipClaim
from common.errors import FrontageError
from common.names import wildcard_above

Product = Literal["power", "secure"]
Status = Literal["active", "inactive"]
CertificateState = Literal["none", "ordering", "live"]

MOST_AGAIN = 5
HOLD_SECONDS = 10.0
"""How long an edge may hold handshakes for a certificate just ordered: less than what browsers wait."""

_SETTINGS = ", ".join(SETTINGS)
_OR_NULL = "nullif({}, '{{}}'::jsonb)"
_STORED = {"redirect_to": "nullif({}, '')", "metadata": _OR_NULL, "visitors": _OR_NULL, "response_policy": _OR_NULL}
"""Settings of which an empty one is none."""


def _stored(name: str, value: str) -> str:
    """Return the setting as it is stored, in SQL; `value` is a parameter or a column."""
    return _STORED.get(name, "{}").format(value)


_PLACES = ", ".join(_stored(name, f"${place}") for place, name in enumerate(SETTINGS, start=4))
_GIVEN = ", ".join(_stored(name, name) for name in SETTINGS)

_IN_SERVICE = "select from certificates c where c.domain = d.domain and c.released_at is null"

# A renewal takes nothing away: what was live stays live until it has lapsed.
_CERTIFICATE = f"""case when exists ({_IN_SERVICE} and c.live_at is not null and c.not_after > now())
        or exists (select from own_certificates w where w.domain = d.domain and w.not_after > now()) then 'live'
    when exists (select from orders o where o.domain = d.domain and (o.state = 'running'
        or o.state = 'issued' and exists ({_IN_SERVICE} and c.not_after > now()))) then 'ordering'
    else 'none' end"""

_IS_PREPARED = """exists (select from preparations p where p.domain = d.domain and p.application_id = d.application_id
        and p.state in ('issuing', 'prepared'))"""

# Kept by triggers: `domain_active_until`.
STATUS_NOW = "case when d.active_until > now() then 'active' else 'inactive' end"

_DOMAINS = f"""
    select d.domain, d.product, d.application_id, d.created_at, d.departed_at, d.redirect_to, d.claim,
        {_IS_PREPARED} as is_prepared,
        coalesce(d.application_url, a.application_url, '') as application_url,
        coalesce(d.root_path_access, a.root_path_access) as root_path_access,
        d.metadata, d.visitors, d.response_policy, {STATUS_NOW} as status, {_CERTIFICATE} as certificate
    from domains d join applications a on a.id = d.application_id"""


class AlreadyEnrolled(FrontageError):
    """The domain has this product already, or another application has the domain."""


class EnrolledTooOften(FrontageError):
    """The name was enrolled `MOST_AGAIN` times in 24 hours; after `retry_after_seconds` it may be once more."""

    def __init__(self, domain: str, retry_after_seconds: float) -> None:
        super().__init__(domain)
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain under a product, with the settings that apply to it.

    `application_url` and `root_path_access` are the domain's own, or the application's. `certificate` is the name's,
    whatever the product; `departed_at` is when its DNS was seen to lead elsewhere; `claim` is how it was claimed
    (`common.enrolment.ownership.OwnershipClaim`, or ``operator``), where that is known.
    """

    domain: str
    product: Product
    application_id: str
    application_url: str
    root_path_access: tuple[str, ...]
    status: Status
    certificate: CertificateState
    departed_at: datetime | None
    redirect_to: str | None = None
    claim: str | None = None
    is_prepared: bool = False
    """It is served although its DNS does not lead here yet (`common.db.preparations`)."""
    metadata: Mapping[str, str] | None = None
    """The application's notes."""
    visitors: Mapping[str, Any] | None = None
    """Rules for visitors (`common.visitors`)."""
    response_policy: Mapping[str, Any] | None = None
    """What its responses carry before what its application states, under the API's names."""


async def power(
    connection: Connection[Record],
    domain: str,
    application_id: str,
    settings: DomainSettings,
    claim: OwnershipClaim | None = None,
) -> None:
    """Enrol `domain` in Power and order its certificate, under `certificates.lock_domain`.

    Raises: `AlreadyEnrolled`, `EnrolledTooOften`.
    """
    status = await connection.execute(
        f"insert into domains (domain, product, application_id, claim, {_SETTINGS})"
        f" select $1, 'power', $2, $3, {_PLACES} where not exists"
        " (select from domains where domain = $1 and (product = 'power' or application_id <> $2))",
        domain,
        application_id,
        claim,
        *astuple(settings),
    )
    if status == "INSERT 0 0":
        raise AlreadyEnrolled(domain)
    await _count_enrolment(connection, domain, "power", application_id)
    await _request_certificate(connection, domain, application_id, "power")


async def secure(
    connection: Connection[Record],
    domain: str,
    application_id: str,
    settings: DomainSettings,
    claim: OwnershipClaim | None = None,
) -> None:
    """Enrol `domain` in Secure, or once more when nothing came of it, and order its certificate.

    Whether the application may have it is the caller's to find out, under `certificates.lock_domain`.

    Raises: `EnrolledTooOften`.
    """
    await _count_enrolment(connection, domain, "secure", application_id)
    again = ", ".join(f"{name} = excluded.{name}" for name in SETTINGS)
    await connection.execute(
        f"insert into domains (domain, product, application_id, claim, {_SETTINGS})"
        f" values ($1, 'secure', $2, $3, {_PLACES}) on conflict (domain, product) do update set {again},"
        " claim = excluded.claim, departed_at = null, origin_vouched = true, updated_at = now()",
        domain,
        application_id,
        claim,
        *astuple(settings),
    )
    await _request_certificate(connection, domain, application_id, "secure")


async def update(
    connection: Connection[Record], domain: str, product: Product, application_id: str, settings: DomainSettings
) -> bool:
    """Change the settings that are given, and return whether the application has this domain in the product.

    Whether a redirect closes a loop is for the caller to find out, under `lock_redirects`
    (`common.enrolment.redirect_loops`).
    """
    given = settings.given()
    changes = [f"{name} = {_stored(name, f'${place}')}" for place, name in enumerate(given, start=4)]
    if settings.application_url is not None:
        changes.append("origin_vouched = true")
    status = await connection.execute(
        f"update domains set {', '.join([*changes, 'updated_at = now()'])}"
        " where domain = $1 and product = $2 and application_id = $3",
        domain,
        product,
        application_id,
        *given.values(),
    )
    return status == "UPDATE 1"


async def prepare(connection: Connection[Record], application_id: str, wanted: Wanted) -> None:
    """Enrol the domain as inactive, or change how it is to be served, and order its certificate.

    Runs under `certificates.lock_domain`; the name is free, or the application's own.
    """
    again = ", ".join(f"{name} = excluded.{name}" for name in SETTINGS)
    await connection.execute(
        f"insert into domains (domain, product, application_id, claim, departed_at, {_SETTINGS})"
        f" values ($1, '{wanted.product}', $2, $3, now(), {_PLACES}) on conflict (domain, product)"
        f" do update set {again}, claim = excluded.claim, origin_vouched = true, updated_at = now()",
        wanted.domain,
        application_id,
        OwnershipClaim.DELEGATION,
        *astuple(wanted.settings),
    )
    if await orders.request_order(connection, wanted.domain, application_id, hold_seconds=0.0):
        await preparations.record_served(connection, wanted.domain, application_id)


async def settings_of(
    connection: Connection[Record], domain: str, product: Product, application_id: str
) -> dict[str, Any]:
    """Return the settings that the application has given the domain, empty where it does not have the domain."""
    row = await connection.fetchrow(
        f"select {_SETTINGS} from domains where domain = $1 and product = $2 and application_id = $3",
        domain,
        product,
        application_id,
    )
    return dict(row) if row else {}


async def lock_redirects(connection: Connection[Record]) -> None:
    """Keep other transactions from setting redirects until this one ends. Call it before a domain is locked."""
    await locks.hold(connection, "redirects")


async def redirect_of(connection: Connection[Record], domain: str) -> str | None:
    """Return where visitors of the name are redirected, or None; a name in Power is served, whatever its Secure has.

    A name that is not enrolled is served as the wildcard that stands for it.
    """
    redirect_to: str | None = await connection.fetchval(
        "select redirect_to from domains where domain in ($1, $2)"
        " order by domain = $1 desc, product limit 1",  # 'power' has none, and comes before 'secure'
        domain,
        wildcard_above(domain),
    )
    return redirect_to


async def has(connection: Connection[Record], domain: str, product: Product, application_id: str) -> bool:
    """Return whether the application has the domain under this product."""
    return bool(
        await connection.fetchval(
            "select exists (select from domains where domain = $1 and product = $2 and application_id = $3)",
            domain,
            product,
            application_id,
        )
    )


async def certificate_states(
    connection: Connection[Record], names: Collection[str], application_id: str
) -> dict[str, CertificateState]:
    """Return the state of the certificate of those names that the application has enrolled."""
    rows = await connection.fetch(
        f"select distinct d.domain, {_CERTIFICATE} as state from domains d"
        " where d.domain = any($1) and d.application_id = $2",
        list(names),
        application_id,
    )
    return {row["domain"]: row["state"] for row in rows}


async def remove(
    connection: Connection[Record], domain: str, product: Product, application_id: str
) -> dict[str, Any] | None:
    """Take the product from the domain; once nothing is left of it, release its certificate, and remember its holder.

    Returns the settings that the domain had, or None where the application did not have it.
    """
    await certificates.lock_domain(connection, domain)
    row = await connection.fetchrow(
        f"delete from domains where domain = $1 and product = $2 and application_id = $3 returning {_SETTINGS}",
        domain,
        product,
        application_id,
    )
    if row is None:
        return None
    await certificates.release(connection, domain)
    if not await connection.fetchval("select exists (select from domains where domain = $1)", domain):
        await ownership.remember(connection, [domain], application_id)
    return dict(row)


async def remove_all(connection: Connection[Record], names: Collection[str], application_id: str) -> None:
    """Take these names from the application, whatever product they are in, with their orders and certificates."""
    await locks.hold(connection, "domain", *names)
    for table in ("domains", "orders", "certificates"):
        await connection.execute(
            f"delete from {table} where domain = any($1) and application_id = $2", names, application_id
        )
    await ownership.remember(connection, names, application_id)


@dataclass(frozen=True, slots=True)
class NewDomain:
    """A domain as an operator enrols it."""

    domain: str
    product: Product
    settings: DomainSettings


async def enrol_by_hand(connection: Connection[Record], application_id: str, new: Sequence[NewDomain]) -> None:
    """Enrol names that no other application holds now, by an operator's command, without limits and without the DNS.

    The caller has taken `certificates.lock_domain` of each.
    """
    await connection.execute(
        f"insert into domains (domain, product, application_id, claim, {_SETTINGS})"
        f" select domain, product, $2, 'operator', {_GIVEN} from jsonb_populate_recordset(null::domains, $1)",
        [{"domain": each.domain, "product": each.product} | each.settings.given() for each in new],
        application_id,
    )
    known = await certificates.find_known(connection, [each.domain for each in new])
    unknown = {each.domain for each in new} - known
    if unknown:
        await orders.request_unproven(connection, sorted(unknown), application_id, hold_seconds=HOLD_SECONDS)
    for each in new:
        if each.domain in known:
            await _request_certificate(connection, each.domain, application_id, each.product, is_proven=False)


async def list_names(
    connection: Connection[Record], *, after: str = "", most: int, application_id: str | None = None
) -> list[str]:
    """Return the next `most` enrolled names after `after`, in their order: all, or an application's.

    However many there are, no more rows are read.
    """
    if application_id is None:
        statement = "select domain from domains where domain > $1 group by domain order by domain limit $2"
        rows = await connection.fetch(statement, after, most)
    else:  # two ordered walks over the application's own index
        each = (
            "(select domain from domains where application_id = $3 and product = '{}' and domain > $1"
            " order by domain limit $2)"
        )
        statement = f"{each.format('power')} union {each.format('secure')} order by domain limit $2"
        rows = await connection.fetch(statement, after, most, application_id)
    return [row["domain"] for row in rows]


async def find_many(connection: Connection[Record], names: Collection[str]) -> list[Domain]:
    """Return what these names are enrolled in, by name and product."""
    rows = await connection.fetch(f"{_DOMAINS} where d.domain = any($1) order by d.domain, d.product", names)
    return [_domain(row) for row in rows]


async def find(connection: Connection[Record], domain: str) -> list[Domain]:
    """Return the name's enrolments, whichever application holds it."""
    return [_domain(row) for row in await connection.fetch(f"{_DOMAINS} where d.domain = $1", domain)]


async def _count_enrolment(connection: Connection[Record], domain: str, product: Product, application_id: str) -> None:
    """Count the enrolment, and refuse one too many.

    Raises: `EnrolledTooOften`.
    """
    if not await enrolments.record_again(connection, domain, product, application_id, most=MOST_AGAIN):
        wait = await enrolments.seconds_until_again(connection, domain, product, application_id, most=MOST_AGAIN)
        raise EnrolledTooOften(domain, wait)


async def _request_certificate(
    connection: Connection[Record], domain: str, application_id: str, product: Product, *, is_proven: bool = True
) -> None:
    """Order the domain's certificate; where it is live already, report that for this product alone."""
    if await orders.request_order(connection, domain, application_id, hold_seconds=HOLD_SECONDS, is_proven=is_proven):
        await outcomes.record_success(connection, domain, application_id, products=(product,))


def _domain(row: Record) -> Domain:
    return Domain(
        row["domain"],
        row["product"],
        row["application_id"],
        row["application_url"],
        tuple(row["root_path_access"]),
        row["status"],
        row["certificate"],
        row["departed_at"],
        row["redirect_to"],
        row["claim"],
        row["is_prepared"],
        row["metadata"],
        row["visitors"],
        row["response_policy"],
    )
