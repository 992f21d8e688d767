"""Flows of the connect modal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from api.answers.connect import Flow, FlowPreparationAnswer
from api.answers.flow_list import Funnel, ListedFlow
from api.answers.lists import ListOf
from api.answers.messages import Message
from api.answers.sharing import RegisteredConfiguration, RegisteredConfigurations
from api.handlers.connect import ConfigurationHandlers, ConnectHandlers
from api.handlers.connect_return import ConnectReturnHandler
from api.handlers.flow_list import FlowListHandlers
from api.operations.operation import HandlerOf, Operation, Query
from api.operations.parameters import DIGEST, FLOW, LIMIT, NEXT, RECORD, TEXT, back_in_time
from api.schemas import connect
from api.schemas.flow_list import DEFAULT_DAYS
from common.db.connect_flow_list import COUNTED, SCANNED, STEPS
from common.db.connect_flows import KEPT_DAYS
from common.flow_states import State


def _flow_action(
    action: str,
    handler: HandlerOf[ConnectHandlers],
    name: str,
    summary: str,
    body: type[BaseModel],
    example: Mapping[str, Any],
) -> Operation[ConnectHandlers]:
    return Operation(
        "POST",
        f"/connect/flows/{{id}}/{action}",
        handler,
        name,
        "Connect",
        summary,
        Flow,
        body=body,
        example=example,
        errors=(400, 404, 409, 502),
        paths=FLOW,
    )


_CONFIGURATION: Final = {"id": "The configuration's id."}

CONFIGURATIONS: Final[tuple[Operation[ConfigurationHandlers], ...]] = (
    Operation(
        "POST",
        "/connect/configurations",
        ConfigurationHandlers.post,
        "registerConfiguration",
        "Connect",
        "Register what browsers may ask for; the same configuration again is the same one",
        RegisteredConfiguration,
        status=201,
        body=connect.ConfigurationBody,
        example={"config": {"power": True, "dnsRecords": [RECORD | {"applicationUrl": "https://app.acme.example"}]}},
        errors=(400,),
    ),
    Operation(
        "GET",
        "/connect/configurations",
        ConfigurationHandlers.list_all,
        "getConfigurations",
        "Connect",
        "List registered configurations, the newest first",
        RegisteredConfigurations,
        queries=back_in_time({"type": "string", "format": "date-time"}),
        errors=(400,),
    ),
    Operation(
        "GET",
        "/connect/configurations/{id}",
        ConfigurationHandlers.get,
        "getConfiguration",
        "Connect",
        "Get a registered configuration",
        RegisteredConfiguration,
        errors=(404,),
        paths=_CONFIGURATION,
    ),
    Operation(
        "DELETE",
        "/connect/configurations/{id}",
        ConfigurationHandlers.delete,
        "removeConfiguration",
        "Connect",
        "Delete a registered configuration, with its links and its flows that are not finished",
        Message,
        errors=(404,),
        paths=_CONFIGURATION,
    ),
)

FLOWS: Final[tuple[Operation[ConnectHandlers], ...]] = (
    Operation(
        "POST",
        "/connect/flows",
        ConnectHandlers.post,
        "createFlow",
        "Connect",
        "Begin to connect a domain",
        Flow,
        status=201,
        body=connect.ConnectBody,
        example={"domain": "customer.example", "dnsRecords": [RECORD]},
        errors=(400, 404),
    ),
    Operation(
        "GET",
        "/connect/flows/{id}",
        ConnectHandlers.get,
        "getFlow",
        "Connect",
        "Get a flow",
        Flow,
        errors=(404, 409),
        paths=FLOW,
    ),
    Operation(
        "GET",
        "/connect/flows/{id}/events",
        ConnectHandlers.get_events,
        "watchFlow",
        "Connect",
        "Follow a flow by server-sent events, each the whole flow",
        None,
        errors=(404, 409),
        paths=FLOW,
        media_type="text/event-stream",
    ),
    _flow_action(
        "domain",
        ConnectHandlers.choose,
        "chooseDomain",
        "Choose the domain",
        connect.DomainBody,
        {"domain": "customer.example"},
    ),
    _flow_action(
        "plan", ConnectHandlers.plan, "planFlow", "Read the zone again and make a plan", connect.EmptyBody, {}
    ),
    _flow_action(
        "apply",
        ConnectHandlers.apply,
        "applyFlow",
        "Do exactly what the plan shows, by one of the ways open",
        connect.ApplyBody,
        {"way": "manual", "digest": DIGEST},
    ),
    Operation(
        "GET",
        "/connect/flows/{id}/prepare",
        ConnectHandlers.get_preparation,
        "getFlowPreparation",
        "Connect",
        "Get how far the names of a flow are prepared",
        FlowPreparationAnswer,
        errors=(404, 409),
        paths=FLOW,
    ),
    Operation(
        "POST",
        "/connect/flows/{id}/prepare",
        ConnectHandlers.prepare,
        "prepareFlow",
        "Connect",
        "Prepare the names of a planned flow, so that a site that is up stays up while its records change",
        FlowPreparationAnswer,
        body=connect.EmptyBody,
        example={},
        errors=(400, 404, 409),
        paths=FLOW,
    ),
    _flow_action(
        "check",
        ConnectHandlers.check,
        "checkFlow",
        "Check the records now, or retry failed enrolments",
        connect.EmptyBody,
        {},
    ),
    _flow_action("undo", ConnectHandlers.undo, "undoFlow", "Put back what was replaced", connect.UndoBody, {}),
    _flow_action(
        "close", ConnectHandlers.close, "closeFlow", "End the flow before anything is written", connect.EmptyBody, {}
    ),
)

LISTS: Final[tuple[Operation[FlowListHandlers], ...]] = (
    Operation(
        "GET",
        "/connect/flows",
        FlowListHandlers.get,
        "getFlows",
        "Connect",
        f"List flows of the last {KEPT_DAYS} days, the newest first, with the step that each has come to",
        ListOf[ListedFlow],
        queries=(
            Query("state", {"type": "string", "enum": sorted(State)}, "Only these."),
            Query("step", {"type": "string", "enum": list(STEPS)}, "Only those that came so far, and no further."),
            Query("open", {"type": "boolean"}, "`true`: only those that are not over; `false`: only those that are."),
            Query("domain", TEXT, "Only of this domain: an apex with all its subdomains, or one whole name."),
            Query("userId", TEXT, "Only of this user."),
            Query("jobId", TEXT, "Only of this job."),
            Query(
                NEXT.name,
                NEXT.schema,
                f"`next` of the part before. A part looks through {SCANNED:,} flows at most: with a filter, it can hold"
                " fewer than asked for, even none, while `next` is not null.",
            ),
            LIMIT,
        ),
        errors=(400,),
    ),
    Operation(
        "GET",
        "/connect/funnel",
        FlowListHandlers.get_funnel,
        "getFunnel",
        "Connect",
        f"Count how far flows came, by step and by DNS provider: of the newest {COUNTED:,} at most",
        Funnel,
        queries=(
            Query(
                "days",
                {"type": "integer", "minimum": 1, "maximum": KEPT_DAYS, "default": DEFAULT_DAYS},
                "Flows that began in the last so many days.",
            ),
        ),
        errors=(400,),
    ),
)

RETURNS: Final[tuple[Operation[ConnectReturnHandler], ...]] = (
    Operation(
        "GET",
        "/connect/return/{id}",
        ConnectReturnHandler.get,
        "returnToFlow",
        "Connect",
        "Take a browser back from a Domain Connect provider: a page that closes itself",
        None,
        queries=(
            Query("state", TEXT, "That of the flow's URL; it counts once.", is_required=True),
            Query("error", TEXT, "Why the provider did not apply the template (RFC 6749 §4.1.2.1)."),
            Query("error_description", TEXT, "The provider's own text about it."),
        ),
        errors=(404, 409),
        is_open=True,
        has_page=True,
        media_type="text/html",
        paths=FLOW,
    ),
)

OPERATIONS: Final[tuple[Operation[Any], ...]] = (*CONFIGURATIONS, *FLOWS, *LISTS, *RETURNS)
