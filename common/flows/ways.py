"""The ways in which a flow's records can be set, with what a person needs for each (in the column `looked`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

WayName = Literal["domain_connect", "provider_api", "dynamic_update", "manual"]
HostStyle = Literal["relative", "whole", "blank"]


@dataclass(frozen=True, slots=True)
class CredentialField:
    """One that the person fills in; `name` is dns-lexicon's, or this service's for RFC 2136."""

    name: str
    label: str
    is_secret: bool = True
    is_required: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return {
            "name": self.name,
            "label": self.label,
            "isSecret": self.is_secret,
            "isRequired": self.is_required,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> CredentialField:
        """Return the value that `as_json` stored."""
        return cls(stored["name"], stored["label"], stored["isSecret"], stored["isRequired"])


@dataclass(frozen=True, slots=True)
class DomainConnectWay:
    """The provider applies a template on its own page. `width` and `height`: of the window for it, in pixels."""

    way: ClassVar[WayName] = "domain_connect"
    provider: str
    template: str
    width: int
    height: int
    control_panel_url: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return {
            "way": self.way,
            "provider": self.provider,
            "template": self.template,
            "width": self.width,
            "height": self.height,
            "controlPanelUrl": self.control_panel_url,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DomainConnectWay:
        """Return the value that `as_json` stored."""
        return cls(stored["provider"], stored["template"], stored["width"], stored["height"], stored["controlPanelUrl"])


@dataclass(frozen=True, slots=True)
class ProviderApiWay:
    """A token of the provider's API is pasted. `is_own_server`: it is the API of the person's own name server."""

    way: ClassVar[WayName] = "provider_api"
    api: str
    provider: str
    token_url: str
    least_right: str
    is_own_server: bool
    fields: tuple[CredentialField, ...]
    is_expert: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        stored = {
            "way": self.way,
            "api": self.api,
            "provider": self.provider,
            "tokenUrl": self.token_url,
            "leastRight": self.least_right,
            "isOwnServer": self.is_own_server,
            "fields": [each.as_json() for each in self.fields],
        }
        return stored | ({"isExpert": True} if self.is_expert else {})

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ProviderApiWay:
        """Return the value that `as_json` stored."""
        return cls(
            stored["api"],
            stored["provider"],
            stored["tokenUrl"],
            stored["leastRight"],
            stored["isOwnServer"],
            tuple(map(CredentialField.from_json, stored["fields"])),
            stored.get("isExpert", False),
        )


@dataclass(frozen=True, slots=True)
class DynamicUpdateWay:
    """The zone's primary server is written to by RFC 2136; for people who run their own."""

    way: ClassVar[WayName] = "dynamic_update"
    fields: tuple[CredentialField, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return {"way": self.way, "isExpert": True, "fields": [each.as_json() for each in self.fields]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DynamicUpdateWay:
        """Return the value that `as_json` stored."""
        return cls(tuple(map(CredentialField.from_json, stored["fields"])))


@dataclass(frozen=True, slots=True)
class FormRecord:
    """What to type into a provider's form for one record."""

    host: str
    value: str

    def as_json(self) -> dict[str, str]:
        """Return the value as it is stored."""
        return {"host": self.host, "value": self.value}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FormRecord:
        """Return the value that `as_json` stored."""
        return cls(stored["host"], stored["value"])


@dataclass(frozen=True, slots=True)
class FieldNames:
    """What a provider's form calls the fields of a record."""

    type: str
    host: str
    value: str
    ttl: str
    priority: str

    def as_json(self) -> dict[str, str]:
        """Return the value as it is stored."""
        return {
            "type": self.type,
            "host": self.host,
            "value": self.value,
            "ttl": self.ttl,
            "priority": self.priority,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FieldNames:
        """Return the value that `as_json` stored."""
        return cls(stored["type"], stored["host"], stored["value"], stored["ttl"], stored["priority"])


@dataclass(frozen=True, slots=True)
class ManualWay:
    """The person types the records into the provider's form.

    `records` are in the order of the requested ones; `host_style` is the form's host of the root: ``@`` (relative),
    nothing (blank), or the whole name.
    """

    way: ClassVar[WayName] = "manual"
    field_names: FieldNames
    host_style: HostStyle
    records: tuple[FormRecord, ...]
    help_url: str | None

    def without(self, numbers: Collection[int]) -> ManualWay:
        """Return the way without some of the requested records."""
        left = tuple(each for number, each in enumerate(self.records) if number not in numbers)
        return replace(self, records=left)

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        return {
            "way": self.way,
            "fieldNames": self.field_names.as_json(),
            "hostStyle": self.host_style,
            "records": [each.as_json() for each in self.records],
            "helpUrl": self.help_url,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ManualWay:
        """Return the value that `as_json` stored."""
        return cls(
            FieldNames.from_json(stored["fieldNames"]),
            stored["hostStyle"],
            tuple(map(FormRecord.from_json, stored["records"])),
            stored["helpUrl"],
        )


Way: TypeAlias = DomainConnectWay | ProviderApiWay | DynamicUpdateWay | ManualWay

_WAYS: Mapping[WayName, type[Way]] = MappingProxyType(
    {each.way: each for each in (DomainConnectWay, ProviderApiWay, DynamicUpdateWay, ManualWay)}
)


def way_from_json(stored: Mapping[str, Any]) -> Way:
    """Return the way that `as_json` of its type wrote."""
    name: WayName = stored["way"]
    return _WAYS[name].from_json(stored)
