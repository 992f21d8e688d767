"""The column `enrolments`: what a flow enrols its names in once its records are live, and how far that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

from common.domain_settings import DomainSettings
from common.flows.requested import Product
from common.records import Record, as_json, from_json

EnrolmentStatus = Literal["pending", "success", "failed"]


@dataclass(frozen=True, slots=True)
class ProductEnrolment:
    """A name, the product that it is enrolled in, and the settings that it gets.

    `url`: where a browser opens the name, once it is enrolled. `code` and `hint` state why it failed.
    """

    product: Product
    name: str
    settings: DomainSettings
    status: EnrolmentStatus = "pending"
    url: str | None = None
    code: str | None = None
    hint: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        stored = {
            "product": self.product,
            "name": self.name,
            "status": self.status,
            **self.settings.as_json(),
        }
        return stored | _given(url=self.url, code=self.code, hint=self.hint)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ProductEnrolment:
        """Return the value that `as_json` stored."""
        return cls(
            stored["product"],
            stored["name"],
            DomainSettings.from_json(stored),
            stored["status"],
            stored.get("url"),
            stored.get("code"),
            stored.get("hint"),
        )


@dataclass(frozen=True, slots=True)
class MonitorEnrolment:
    """A name whose records are watched. `is_unchanged`: they were watched already, when a browser's flow came."""

    product: ClassVar[Literal["monitor"]] = "monitor"
    name: str
    subdomain: str | None
    records: tuple[Record, ...]
    status: EnrolmentStatus = "pending"
    is_unchanged: bool = False
    code: str | None = None
    hint: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the value as it is stored."""
        stored = {
            "product": self.product,
            "name": self.name,
            "subdomain": self.subdomain,
            "status": self.status,
            "records": [as_json(each) for each in self.records],
        }
        return stored | _given(unchanged=self.is_unchanged or None, code=self.code, hint=self.hint)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> MonitorEnrolment:
        """Return the value that `as_json` stored."""
        return cls(
            stored["name"],
            stored["subdomain"],
            tuple(map(from_json, stored["records"])),
            stored["status"],
            stored.get("unchanged", False),
            stored.get("code"),
            stored.get("hint"),
        )


Enrolment: TypeAlias = ProductEnrolment | MonitorEnrolment


def enrolment_from_json(stored: Mapping[str, Any]) -> Enrolment:
    """Return the enrolment that `as_json` of its type wrote."""
    kind = MonitorEnrolment if stored["product"] == MonitorEnrolment.product else ProductEnrolment
    return kind.from_json(stored)


def pending_again(enrolment: Enrolment) -> Enrolment:
    """Return an enrolment to be tried again, if it failed."""
    return replace(enrolment, status="pending", code=None, hint=None) if enrolment.status == "failed" else enrolment


def _given(**fields: str | bool | None) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
