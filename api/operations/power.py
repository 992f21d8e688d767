"""Powered domains."""

from __future__ import annotations

from typing import Final

from api.answers.lists import ListOf, Page
from api.answers.messages import Message
from api.answers.power import ChangedPoweredDomain, PoweredDomain, PowerEligibility
from api.handlers.power import PowerHandlers
from api.operations.operation import Operation
from api.operations.parameters import AFTER, DOMAIN, METADATA, PAGE, PRODUCT_ERRORS, ROOT, SEARCH, SORT
from api.schemas import bodies, power

OPERATIONS: Final[tuple[Operation[PowerHandlers], ...]] = (
    Operation(
        "GET",
        "/power",
        PowerHandlers.get,
        "getPower",
        "Power",
        "List powered domains, or ask whether one is eligible",
        Page[PoweredDomain] | ListOf[PoweredDomain] | PowerEligibility,
        queries=(DOMAIN, ROOT, *PAGE, SORT, SEARCH, METADATA, AFTER),
        errors=(400,),
    ),
    Operation(
        "POST",
        "/power",
        PowerHandlers.post,
        "powerDomain",
        "Power",
        "Show an application on a domain",
        Message | ChangedPoweredDomain,
        body=power.PowerBody,
        example={"domain": "shop.customer.example", "applicationUrl": "https://app.acme.example/shop"},
        has_representation=True,
        errors=PRODUCT_ERRORS,
    ),
    Operation(
        "PUT",
        "/power",
        PowerHandlers.put,
        "changePoweredDomain",
        "Power",
        "Change a powered domain; what is left out stays",
        Message | ChangedPoweredDomain,
        body=power.PowerChange,
        example={"domain": "shop.customer.example", "applicationUrl": "https://app.acme.example/new"},
        has_representation=True,
        errors=PRODUCT_ERRORS,
    ),
    Operation(
        "DELETE",
        "/power",
        PowerHandlers.delete,
        "removePoweredDomain",
        "Power",
        "Stop showing an application on a domain",
        Message,
        body=bodies.ProductBody,
        example={"domain": "shop.customer.example"},
        errors=PRODUCT_ERRORS,
    ),
)
