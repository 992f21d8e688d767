"""Powered domains."""

from __future__ import annotations

from typing import Final

from api.reference import answers
from api.reference.operations.operation import Operation
from api.reference.operations.parameters import AFTER, DOMAIN, PAGE, ROOT, SEARCH, SORT
from api.schemas import bodies, power

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "GET",
        "/power",
        "getPower",
        "Power",
        "List powered domains, or ask whether one is eligible",
        answers.Page[answers.PoweredDomain] | answers.Part[answers.DetailedPoweredDomain] | answers.PowerEligibility,
        queries=(DOMAIN, ROOT, *PAGE, SORT, SEARCH, AFTER),
        errors=(400,),
    ),
    Operation(
        "POST",
        "/power",
        "powerDomain",
        "Power",
        "Show an application on a domain",
        answers.Message,
        body=power.PowerBody,
        example={"domain": "shop.customer.example", "applicationUrl": "https://app.acme.example/shop"},
        errors=(502,),
    ),
    Operation(
        "PUT",
        "/power",
        "changePoweredDomain",
        "Power",
        "Change a powered domain; what is left out stays",
        answers.Message,
        body=power.PowerChange,
        example={"domain": "shop.customer.example", "applicationUrl": "https://app.acme.example/new"},
        errors=(502,),
    ),
    Operation(
        "DELETE",
        "/power",
        "removePoweredDomain",
        "Power",
        "Stop showing an application on a domain",
        answers.Message,
        body=bodies.ProductBody,
        example={"domain": "shop.customer.example"},
        errors=(502,),
    ),
)
