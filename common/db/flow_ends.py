"""What ends flows of the connect modal from outside: what they came from is taken back.

A flow that is ended goes no further: a monitor closes it, and a person's next request is refused. The rows are
`common.db.connect_flows`'.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from common.db.application_secrets import is_of_living_secret
from common.db.connect_flows import wake
from common.db.session import Connection

LINK_REVOKED = "link_revoked"
CONFIGURATION_REMOVED = "configuration_removed"
KEY_REVOKED = "key_revoked"
SECRET_ENDED = "secret_ended"  # noqa: S105 - a code
ENDS: Mapping[str, str] = MappingProxyType(
    {
        LINK_REVOKED: "the sharing link was revoked: ask for a new one",
        CONFIGURATION_REMOVED: "the application has removed the configuration: begin again from its page",
        KEY_REVOKED: "the API key that the set-up began with was revoked: begin again",
        SECRET_ENDED: "the application has replaced the secret that the set-up began with: begin again",
    }
)
"""Why a flow goes no further, by the code."""

_END = """update connect_flows set ended = $2, due_at = case when due_at is not null then clock_timestamp() end
    where {} = any($1) and ended is null"""


async def end_of_links(connection: Connection, share_ids: Collection[str]) -> None:
    """End the flows that were opened by these links: a monitor closes them."""
    await connection.execute(_END.format("share_id"), list(share_ids), LINK_REVOKED)
    await wake(connection)


async def end_of_configuration(connection: Connection, configuration_id: str) -> None:
    """End the flows of a registered configuration, as `end_of_links`."""
    await connection.execute(_END.format("configuration_id"), [configuration_id], CONFIGURATION_REMOVED)
    await wake(connection)


async def end_of_key(connection: Connection, key_id: str) -> None:
    """End the flows that an API key began, as `end_of_links`."""
    await connection.execute(_END.format("by_key"), [key_id], KEY_REVOKED)
    await wake(connection)


async def find_end(connection: Connection, flow_id: str, *, locks: bool = False) -> str | None:
    """Return why the flow goes no further, as a code; None while it may.

    `locks`: it is not ended before the caller's transaction is.
    """
    end: str | None = await connection.fetchval(
        f"select coalesce(ended, case when not {is_of_living_secret('connect_flows')} then $2 end)"
        f" from connect_flows where id = $1 {'for no key update' if locks else ''}",
        flow_id,
        SECRET_ENDED,
    )
    return end
