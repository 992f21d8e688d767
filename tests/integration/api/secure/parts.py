"""Names, answers and settings that Secure's tests share."""

from __future__ import annotations

from typing import Any

from common.db import applications
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Answer
from tests.integration.api.secured import Ssl, go_live

DOMAIN = "shop.customer.test"
ROOT = "customer.test"
NOT_VALID = "Domain not valid"
ALREADY = "There is already a valid certificate for this domain."
REVIEW = "Please review SSL eligibility status of this domain."
STEP_ONE = "Please complete step 1."
LIMIT = "This domain has been provisioned too many times in 24 hours."
UNREACHABLE = "ApplicationUrl is not reachable"
UNRESOLVED = "Domain provided couldn't be resolved."


def refusal(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.message


async def set_application(service: Service, application_id: str, **changes: Any) -> None:
    async with service.database.transaction() as connection:
        await applications.update_application(connection, application_id, **changes)


async def stored_redirect(service: Service, domain: str) -> str | None:
    async with service.database.connection() as connection:
        stored: str | None = await connection.fetchval("select redirect_to from domains where domain = $1", domain)
    return stored


async def secure_live(service: Service, partner: Ssl) -> None:
    """Secure `DOMAIN`, up to its live certificate."""
    service.point(DOMAIN)
    await partner.post(DOMAIN)
    await go_live(service, DOMAIN, partner.id)
