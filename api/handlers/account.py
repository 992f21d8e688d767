"""``/account``: the user of the API key, and the user's keys.

A key makes no other one: that is done on the dashboard, by a session that was confirmed, or by a command.
"""

from __future__ import annotations

from aiohttp import web

from api.answers import organisations as answers
from api.answers.lists import list_of
from api.auth import KEY_HOLDER
from api.errors import NO_SUCH_KEY, Refused
from api.responses import respond, respond_message
from api.rules.application_tokens import is_id
from api.services import credentials
from common.clock import Clock
from common.db import user_keys
from common.db.pool import Database

REVOKED = "API key successfully revoked."


class AccountHandlers:
    """Handlers of the account."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self, request: web.Request) -> web.Response:
        """Show the user and the key."""
        holder = request[KEY_HOLDER]
        return respond(answers.account(holder.user, holder.rights.memberships, holder.key, self._clock.now()))

    async def list_keys(self, request: web.Request) -> web.Response:
        """List the user's keys."""
        async with self._database.connection() as connection:
            found = await user_keys.list_keys(connection, request[KEY_HOLDER].user.id)
        now = self._clock.now()
        return respond(list_of([answers.key(each, now) for each in found], None, user_keys.MOST_OF_USER))

    async def delete_key(self, request: web.Request) -> web.Response:
        """Revoke a key of the user, by any key of the user's, or by itself."""
        key_id, name = request.match_info["key"], None
        if is_id(key_id):
            async with self._database.transaction() as connection:
                name = await credentials.revoke_key(connection, request[KEY_HOLDER].user, key_id)
        if name is None:
            raise Refused(NO_SUCH_KEY)
        return respond_message(REVOKED)
