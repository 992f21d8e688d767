"""``/application``: the application's own settings and secrets. Parse, serve, render.

Changes of secrets are PUTs: answers to POSTs can be kept for a repetition, and a secret is kept nowhere.
"""

from __future__ import annotations

from datetime import datetime

from aiohttp import web

from api.answers.application import (
    ClientSecret,
    ServiceAuthState,
    SignatureState,
    WebhookSecret,
    application_answer,
    listed_application,
    service_auth_of,
    signature_of,
)
from api.answers.lists import list_of
from api.auth import may_change, rights_of
from api.errors import FORBIDDEN, Refused, invalid_parameter
from api.requests import ACCESS, application_of, read_body
from api.responses import respond, respond_message
from api.rules.application_settings import LONGEST_NAME
from api.rules.application_tokens import PREVIOUS_SECRET_LIFETIME
from api.schemas import application as schemas
from api.schemas import name_lists, queries
from api.services.applications import ApplicationService
from api.services.removals import Removals
from common.clock import Clock
from common.db.applications import Application

CHANGED = "Application successfully updated."
ROTATED = "Secret successfully rotated."
SWITCHED = "Application successfully updated."
DELETING = "Application is being deleted."


class ApplicationHandlers:
    """Handlers of applications."""

    def __init__(self, service: ApplicationService, removals: Removals, clock: Clock) -> None:
        self._service = service
        self._removals = removals
        self._clock = clock

    async def get(self, request: web.Request) -> web.Response:
        """Show the application's settings."""
        application, page = await self._service.read(application_of(request))
        left = await self._service.measure(application) if application.deleting_at is not None else None
        return respond(application_answer(application, page, left, shows_query=may_change(request, application)))

    async def put(self, request: web.Request) -> web.Response:
        """Change settings."""
        body = await read_body(request, schemas.ApplicationChange)
        await self._service.change(application_of(request), body)
        return respond_message(CHANGED)

    async def delete(self, request: web.Request) -> web.Response:
        """Begin the deletion of the application."""
        application = application_of(request)
        body = await read_body(request, schemas.ApplicationRemoval)
        await self._service.begin_removal(application, body.name)
        self._removals.begin(application.id)
        return respond_message(DELETING, 202)

    async def put_operator(self, request: web.Request) -> web.Response:
        """Change what only operators change."""
        body = await read_body(request, schemas.OperatorChange)
        await self._service.change_by_operator(rights_of(request), application_of(request), body)
        return respond_message(CHANGED)

    async def list_all(self, request: web.Request) -> web.Response:
        """List the applications that the user may see, by name."""
        query = name_lists.parse(request.query, fields=2)
        text = (queries.parse_optional_text(request.query, "search") or "").lower()
        if len(text) > LONGEST_NAME or not text.isprintable():
            raise Refused(invalid_parameter("search"), hint="a part of a name, an id or a cname target")
        first, second = query.after or ("", "")
        found = await self._service.list_part(rights_of(request), text=text, after=(first, second), most=query.limit)
        keys = [(each.name, each.id) for each in found]
        return respond(list_of(list(map(listed_application, found)), name_lists.following(keys, query), query.limit))

    async def post(self, request: web.Request) -> web.Response:
        """Make an application."""
        body = await read_body(request, schemas.ApplicationCreation)
        made = await self._service.create_from(rights_of(request), body)
        return respond(application_answer(made, None, shows_query=may_change(request, made)), 201)

    async def put_client_secret(self, request: web.Request) -> web.Response:
        """Make a new client secret."""
        application = _by_current_secret(request)
        body = await read_body(request, schemas.ClientSecretRotation)
        secret = await self._service.rotate_client_secret(application, keeps_links=body.keep_links)
        answer: ClientSecret = {"message": ROTATED, "previousUntil": self._previous_until(), "clientSecret": secret}
        return respond(answer)

    async def put_webhook_secret(self, request: web.Request) -> web.Response:
        """Make a new webhook secret."""
        application = _by_current_secret(request)
        await read_body(request, schemas.SecretRotation)
        secret = await self._service.rotate_webhook_secret(application)
        answer: WebhookSecret = {"message": ROTATED, "previousUntil": self._previous_until(), "webhookSecret": secret}
        return respond(answer)

    async def put_signature(self, request: web.Request) -> web.Response:
        """Sign forwarded requests, with a new key, or not."""
        application = _by_current_secret(request)
        body = await read_body(request, schemas.SignatureSwitch)
        key = await self._service.switch_signature(application, body.action)
        now, _ = await self._service.read(application)
        answer: SignatureState = {"message": SWITCHED, "signature": signature_of(now), "key": key}
        return respond(answer)

    async def put_service_auth(self, request: web.Request) -> web.Response:
        """Send X-Service-Auth, with a new value, or not."""
        application = _by_current_secret(request)
        body = await read_body(request, schemas.ServiceAuthSwitch)
        value = await self._service.switch_service_auth(application, body)
        now, _ = await self._service.read(application)
        answer: ServiceAuthState = {"message": SWITCHED, "serviceAuth": service_auth_of(now), "value": value}
        return respond(answer)

    def _previous_until(self) -> datetime:
        return self._clock.now() + PREVIOUS_SECRET_LIFETIME


def _by_current_secret(request: web.Request) -> Application:
    """Return the application of a token that the current client secret signed. Raises: `Refused`."""
    if not request[ACCESS].by_current_secret:
        raise Refused(FORBIDDEN, hint="the previous client secret changes no secrets: sign with the current one")
    return application_of(request)
