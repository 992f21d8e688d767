"""A partner as the API sees one: an application in the database, tokens, and an HTTP client."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import jwt

from api.rules import application_tokens as applications
from common.db.application_secrets import client_secret_identity, webhook_secret_identity
from common.db.applications import Application, NewApplication, create_application
from common.db.pool import Database
from common.secrets import Keyring
from tests.integration.api.documented import check_answer


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    headers: Any = field(repr=False)

    @property
    def message(self) -> str:
        message: str = self.body["message"]
        return message


@dataclass(slots=True)
class Partner:
    id: str
    secret: str
    session: aiohttp.ClientSession
    url: str

    def token(self, *, lifetime: timedelta = timedelta(minutes=5), **claims: Any) -> str:
        expires = datetime.now(UTC) + lifetime
        return jwt.encode({"exp": expires, "applicationId": self.id, **claims}, self.secret, algorithm="HS256")

    @property
    def headers(self) -> dict[str, str]:
        return {"applicationId": self.id, "Authorization": f"Bearer {self.token()}"}

    async def call(self, method: str, path: str = "/power", **options: Any) -> Answer:
        """Also compares the answer with the API's reference."""
        options.setdefault("headers", self.headers)
        async with self.session.request(method, self.url + path, **options) as response:
            assert response.content_type == "application/json"
            body = await response.json()
            check_answer(method, path, response.status, body)
            return Answer(response.status, body, response.headers)

    async def diagnose(self, domain: str) -> dict[str, Any]:
        answer = await self.call("GET", f"/domains/{domain}/diagnosis")
        assert answer.status == 200
        body: dict[str, Any] = answer.body
        return body

    async def get(self, **query: Any) -> Answer:
        return await self.call("GET", params=query)

    async def post(self, domain: str, url: str = "https://origin.example.com", **fields: Any) -> Answer:
        return await self.call("POST", json={"domain": domain, "applicationUrl": url, **fields})

    async def put(self, domain: str, **fields: Any) -> Answer:
        return await self.call("PUT", json={"domain": domain, **fields})

    async def delete(self, domain: str) -> Answer:
        return await self.call("DELETE", json={"domain": domain})


async def enrol_partner(database: Database, keyring: Keyring, cname_target: str) -> tuple[Application, str]:
    """An application and its client secret."""
    application_id, secret = applications.mint_id(), applications.mint_client_secret()
    new = NewApplication(
        application_id,
        name="A partner",
        cname_target=cname_target,
        client_secret=keyring.seal(secret.encode(), client_secret_identity(application_id)),
        webhook_secret=keyring.seal(b"whsec_", webhook_secret_identity(application_id)),
        root_path_access=("/assets",),
    )
    async with database.transaction() as connection:
        return (await create_application(connection, new)).application, secret
