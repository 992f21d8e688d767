"""A user of the API, with a key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.accounts import Permission, Role, hash_token, mint_key
from common.db import grants, user_keys, users
from common.db.applications import update_application
from common.db.users import Organisation
from tests.integration.api.conftest import Service
from tests.integration.api.documented import check_answer
from tests.integration.api.partner import Answer, Partner


@dataclass(slots=True)
class Person:
    """`application`: what the header names, where a call does not say otherwise."""

    service: Service
    user: users.User
    key: str
    key_id: str
    application: str | None = None

    async def call(self, method: str, path: str, *, application: str | None = None, **options: Any) -> Answer:
        """Also compares the answer with the API's reference."""
        headers = {"Authorization": f"Bearer {self.key}", **options.pop("headers", {})}
        if named := application or self.application:
            headers["applicationId"] = named
        url = self.service.url + path
        async with self.service.session.request(method, url, headers=headers, **options) as response:
            body = await response.json()
            check_answer(method, path, response.status, body)
            return Answer(response.status, body, response.headers)


async def organisation(service: Service, name: str = "Acme", *partners: Partner) -> Organisation:
    """With the partners' applications."""
    async with service.database.transaction() as connection:
        made = await users.create_organisation(connection, name)
        for partner in partners:
            await update_application(connection, partner.id, organisation_id=made.id)
    return made


async def person(
    service: Service,
    email: str,
    of: Organisation | None = None,
    role: Role = "developer",
    permission: Permission = Permission.OWN,
    *,
    application: Partner | None = None,
) -> Person:
    """A new user; without an organisation, an operator."""
    async with service.database.transaction() as connection:
        user = await users.create_user(connection, email, is_operator=of is None)
        if of is not None:
            await grants.give_role(connection, user, of.id, role)
    return await key_of(service, user, permission, application=application)


async def key_of(
    service: Service,
    user: users.User,
    permission: Permission,
    *,
    application: Partner | None = None,
    days: int = 1,
    only: str | None = None,
) -> Person:
    """The user, by another key; `only`: the application that it opens alone."""
    token = mint_key()
    async with service.database.transaction() as connection:
        made = await user_keys.add(connection, user, hash_token(token), "A key", permission, days, only)
    assert made is not None
    return Person(service, user, token, made.id, application.id if application is not None else None)
