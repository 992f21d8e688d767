"""What a flow's records ask to be enrolled, from which monitors enrol and the modal prepares."""

from __future__ import annotations

from common.db.connect_flows import Flow
from common.flows.enrolments import Enrolment, MonitorEnrolment, ProductEnrolment
from common.flows.requested import Product


def products_of(flow: Flow) -> list[ProductEnrolment]:
    """Return the names and products that the flow's records ask for, in the order of the records."""
    assert flow.domain is not None
    found: dict[tuple[Product, str], ProductEnrolment] = {}
    for each in flow.requested:
        name, purpose = each.name(flow.domain), each.purpose
        if purpose.product is not None:
            found.setdefault(
                (purpose.product, name),
                ProductEnrolment(purpose.product, name, purpose.settings),
            )
    return [*found.values()]


def enrolments_of(flow: Flow) -> list[Enrolment]:
    """Return the enrolments that the flow's records ask for, in order: products by name, then what is monitored."""
    watched = tuple(each.record for each in flow.requested if each.purpose.is_monitored)
    monitoring = [MonitorEnrolment(flow.host or "", flow.subdomain, watched)] if watched else []
    return [*products_of(flow), *monitoring]
