"""The ways in which a flow's records can be set, as clients see them."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from common.flows import ways as stored


class CredentialField(TypedDict):
    """A field that the person fills in; apply and undo take it in `credentials`, under its `name`."""

    name: str
    """The key in `credentials`."""
    label: str
    """What the modal calls the field."""
    isSecret: bool
    """It is typed hidden."""
    isRequired: bool
    """The way needs it."""


class DomainConnectWay(TypedDict):
    """The provider applies a template on its own page; apply answers with the `handover` to it."""

    way: Literal["domain_connect"]
    """Which way this is."""
    provider: str
    """The provider's name, as it states it."""
    template: str
    """The template's service id."""
    width: int
    """Of the window for the provider's page, in pixels."""
    height: int
    """Of the window for the provider's page, in pixels."""
    controlPanelUrl: str | None
    """Where the person manages the domain at the provider."""


class ProviderApiWay(TypedDict):
    """The person pastes a token of the provider's API, which is used for one request and forgotten."""

    way: Literal["provider_api"]
    """Which way this is."""
    api: str
    """The API's id."""
    provider: str
    """The provider's name."""
    tokenUrl: str
    """The page on which the token is made, or that documents it."""
    leastRight: str
    """What the token needs to be allowed, and no more."""
    isOwnServer: bool
    """It is the API of the person's own name server."""
    fields: list[CredentialField]
    """What the person pastes."""
    isExpert: NotRequired[bool]
    """Sent as true for people who run their own name servers; else left out."""


class DynamicUpdateWay(TypedDict):
    """The zone's primary server is written to by RFC 2136."""

    way: Literal["dynamic_update"]
    """Which way this is."""
    isExpert: bool
    """True: it is for people who run their own name servers."""
    fields: list[CredentialField]
    """The server and its TSIG key (RFC 8945)."""


class FieldNames(TypedDict):
    """What the provider's form calls the fields of a record."""

    type: str
    """The field of a record's type."""
    host: str
    """The field of a record's host."""
    value: str
    """The field of a record's value."""
    ttl: str
    """The field of a record's TTL."""
    priority: str
    """The field of an MX record's priority."""


class FormRecord(TypedDict):
    """What to type into the provider's form for a record."""

    host: str
    """In the form's own style: `hostStyle` of the manual way."""
    value: str
    """A name without its final dot."""


class ManualWay(TypedDict):
    """The person types the records into the provider's form."""

    way: Literal["manual"]
    """Which way this is."""
    fieldNames: FieldNames
    """What the form calls the fields."""
    hostStyle: stored.HostStyle
    """What the form takes as the host of the root: `@` (relative), nothing (blank), or the whole name."""
    records: list[FormRecord]
    """In the order of the flow's `records`."""
    helpUrl: str | None
    """The provider's own instructions."""


FlowWay: TypeAlias = DomainConnectWay | ProviderApiWay | DynamicUpdateWay | ManualWay


def flow_way(way: stored.Way) -> FlowWay:
    """Render a way."""
    match way:
        case stored.DomainConnectWay():
            return _domain_connect(way)
        case stored.ProviderApiWay():
            return _provider_api(way)
        case stored.DynamicUpdateWay():
            return {"way": "dynamic_update", "isExpert": True, "fields": list(map(_field, way.fields))}
        case stored.ManualWay():
            return _manual(way)


def form_record(record: stored.FormRecord) -> FormRecord:
    """Render what to type into the provider's form for a record."""
    return {"host": record.host, "value": record.value}


def _domain_connect(way: stored.DomainConnectWay) -> DomainConnectWay:
    return {
        "way": "domain_connect",
        "provider": way.provider,
        "template": way.template,
        "width": way.width,
        "height": way.height,
        "controlPanelUrl": way.control_panel_url,
    }


def _provider_api(way: stored.ProviderApiWay) -> ProviderApiWay:
    answer: ProviderApiWay = {
        "way": "provider_api",
        "api": way.api,
        "provider": way.provider,
        "tokenUrl": way.token_url,
        "leastRight": way.least_right,
        "isOwnServer": way.is_own_server,
        "fields": list(map(_field, way.fields)),
    }
    if way.is_expert:
        answer["isExpert"] = True
    return answer


def _field(field: stored.CredentialField) -> CredentialField:
    return {
        "name": field.name,
        "label": field.label,
        "isSecret": field.is_secret,
        "isRequired": field.is_required,
    }


def _manual(way: stored.ManualWay) -> ManualWay:
    names = way.field_names
    return {
        "way": "manual",
        "fieldNames": {
            "type": names.type,
            "host": names.host,
            "value": names.value,
            "ttl": names.ttl,
            "priority": names.priority,
        },
        "hostStyle": way.host_style,
        "records": list(map(form_record, way.records)),
        "helpUrl": way.help_url,
    }
