"""Two applications and one name: what their zones say, what the API answers, and who has it."""

from __future__ import annotations

from typing import Any

from common.db import delegations
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Answer, Partner

SHOP = "shop.customer.test"
ROOT = "customer.test"
ALREADY = "This domain has been already powered."
NOT_VALID = "Domain not valid"
REVIEW = "Please review Power eligibility status of this domain."
REASON = "Phishing was reported."
NOTHING = {
    "eligible": False,
    "powerStatus": "inactive",
    "cnameTarget": "",
    "applicationUrl": "",
    "powerRootPathAccess": [],
}


def refusal(answer: Answer) -> tuple[int, str, str | None]:
    return answer.status, answer.message, answer.body.get("code")


def name_by_txt(service: Service, domain: str, *partners: Partner) -> None:
    service.zone.replace(f"_frontage.{domain}", "TXT", *(f"application={each.id}" for each in partners))


def txt_of(name: str, partner: Partner) -> str:
    return f"the TXT record _frontage.{name} with the value application={partner.id}"


async def fetch(service: Service, statement: str) -> list[tuple[Any, ...]]:
    async with service.database.connection() as connection:
        return [tuple(row) for row in await connection.fetch(statement)]


async def holder(service: Service, domain: str = SHOP) -> set[str]:
    return {row[0] for row in await fetch(service, f"select application_id from domains where domain = '{domain}'")}


async def two(service: Service) -> tuple[Partner, Partner]:
    return await service.partner(), await service.partner()


async def holder_and_other(service: Service) -> tuple[Partner, Partner]:
    """Two applications, of which the first has the name, that leads to it."""
    old, new = await two(service)
    service.point(SHOP)
    await old.post(SHOP)
    return old, new


async def delegate(service: Service, domain: str, partner: Partner) -> None:
    async with service.database.connection() as connection:
        label = await delegations.mint(connection, domain, partner.id)
        assert await delegations.mint(connection, domain, partner.id) == label
    service.zone.replace(f"_acme-challenge.{domain}", "CNAME", f"{label}.acme.frontage.test")
