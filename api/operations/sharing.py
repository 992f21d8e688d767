"""Sharing links."""

from __future__ import annotations

from typing import Any, Final

from api.answers.messages import Message
from api.answers.sharing import Share, SharedLink, SharedLinks
from api.handlers.connect import SharingHandlers
from api.handlers.share import ShareHandler
from api.operations.operation import Operation
from api.operations.parameters import FLOW, RECORD, back_in_time
from api.schemas import connect
from common.accounts import Permission

LINKS: Final[tuple[Operation[SharingHandlers], ...]] = (
    Operation(
        "POST",
        "/connect/flows/{id}/share",
        SharingHandlers.share_flow,
        "shareFlow",
        "Sharing",
        "Make a link that opens this flow's configuration",
        SharedLink,
        status=201,
        body=connect.FlowShareBody,
        example={"expiresInDays": 7},
        errors=(400, 404, 409),
        paths=FLOW,
    ),
    Operation(
        "POST",
        "/sharing/connect",
        SharingHandlers.post,
        "shareConfiguration",
        "Sharing",
        "Make a link that opens a configuration of the connect modal",
        SharedLink,
        status=201,
        body=connect.ShareBody,
        example={"config": {"prefilledDomain": "customer.example", "dnsRecords": [RECORD]}},
        errors=(400,),
    ),
    Operation(
        "GET",
        "/sharing/connect",
        SharingHandlers.get,
        "getLinks",
        "Sharing",
        "List sharing links, the newest first",
        SharedLinks,
        queries=back_in_time({"type": "string", "format": "date-time"}),
        errors=(400,),
        permission=Permission.CHANGE,  # the links open flows
    ),
    Operation(
        "DELETE",
        "/sharing/connect/{id}",
        SharingHandlers.delete,
        "revokeLink",
        "Sharing",
        "Revoke a sharing link",
        Message,
        errors=(404,),
        paths={"id": "The link's id."},
    ),
)

SHARED: Final[tuple[Operation[ShareHandler], ...]] = (
    Operation(
        "GET",
        "/share/{id}",
        ShareHandler.get,
        "getShare",
        "Sharing",
        "Get the records behind a sharing link; a page for browsers",
        Share,
        errors=(404,),
        is_open=True,
        has_page=True,
        paths={"id": "What the link ends with."},
    ),
)

OPERATIONS: Final[tuple[Operation[Any], ...]] = (*LINKS, *SHARED)
