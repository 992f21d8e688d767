"""Domains as an operator sees them by the command line: any name, whichever application has it.

What an operator does with them is `api.services.domain_operations`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.rights import Rights
from api.services.domain_operations import not_enrolled
from common.db import applications, certificates, domains, orders, own_certificates, ownership, policies, revocations
from common.db.applications import Application
from common.db.certificates import InService
from common.db.domains import Domain, Product, Status
from common.db.orders import OrderState
from common.db.own_certificates import OwnCertificate
from common.db.ownership import FormerHolder
from common.db.policies import Policy
from common.db.pool import Database
from common.db.revocations import RevocationState
from common.names import DomainName

_READ_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class DescribedDomain:
    """All that is known of a name; `domains` by product."""

    application: Application | None
    is_target: bool
    blocked: Policy | None
    domains: Sequence[Domain]
    certificate: InService | None
    order: OrderState | None
    former_holders: Sequence[FormerHolder]


@dataclass(frozen=True, slots=True)
class DescribedCertificate:
    """A domain's certificate, with its `chain` in PEM, its partner's own, its order, and what was revoked."""

    in_service: InService | None
    chain: str | None
    own: OwnCertificate | None
    order: OrderState | None
    revocations: Sequence[RevocationState]


@dataclass(frozen=True, slots=True)
class OperatorDomains:
    """Lists and describes domains. One instance per command; each call takes the caller's rights."""

    database: Database

    async def list_blocked(self, rights: Rights, *, after: str, most: int) -> list[Policy]:
        """Return the blocked names, from the one behind `after` on. Raises: `Refused`."""
        rights.require_operator()
        async with self.database.connection() as connection:
            return await policies.list_policies(connection, "domain", after=after, most=most)

    async def list_part(
        self,
        rights: Rights,
        *,
        application_id: str | None,
        product: Product | None,
        status: Status | None,
        after: str,
        most: int,
    ) -> list[Domain]:
        """Return up to `most` names behind `after`, a name's products together. Raises: `Refused`.

        It is read in short statements, however rare the product or the status.
        """
        rights.require_operator()
        wanted: list[Domain] = []
        names: set[str] = set()
        async with self.database.connection() as connection:
            while True:
                page = await domains.list_names(
                    connection, after=after, most=_READ_AT_ONCE, application_id=application_id
                )
                for each in await domains.find_many(connection, page):
                    if (product and each.product != product) or (status and each.status != status):
                        continue
                    if each.domain not in names and len(names) == most:
                        return wanted
                    names.add(each.domain)
                    wanted.append(each)
                if len(page) < _READ_AT_ONCE:
                    return wanted
                after = page[-1]

    async def describe(self, rights: Rights, name: DomainName) -> DescribedDomain:
        """Return all that is known of the name, enrolled or not. Raises: `Refused`."""
        rights.require_operator()
        async with self.database.connection() as connection:
            held = await domains.find(connection, name.text)
            standing = await ownership.find_standing(connection, name, "")
            holder = standing.holder
            return DescribedDomain(
                application=await applications.get_application(connection, holder) if holder else None,
                is_target=standing.is_target,
                blocked=await policies.find_in_force(connection, name.text, holder),
                domains=sorted(held, key=lambda each: each.product),
                certificate=await certificates.describe(connection, name.text),
                order=await orders.describe(connection, name.text),
                former_holders=await ownership.list_former_holders(connection, name.text),
            )

    async def describe_certificate(self, rights: Rights, name: DomainName) -> DescribedCertificate:
        """Return how the domain's certificate stands. Raises: `Refused` for a name that never had an order."""
        rights.require_operator()
        async with self.database.connection() as connection:
            order = await orders.describe(connection, name.text)
            revoked = await revocations.describe(connection, name.text)
            if order is None and not revoked:
                raise not_enrolled(name)
            return DescribedCertificate(
                in_service=await certificates.describe(connection, name.text),
                chain=await certificates.chain_in_service(connection, name.text),
                own=await own_certificates.find(connection, name.text),
                order=order,
                revocations=revoked,
            )
