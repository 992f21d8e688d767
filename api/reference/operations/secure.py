"""Secured domains."""

from __future__ import annotations

from typing import Final

from api.reference import answers
from api.reference.operations.operation import Operation
from api.reference.operations.parameters import AFTER, DOMAIN, PAGE, ROOT, SEARCH, SORT
from api.schemas import secure

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "GET",
        "/ssl",
        "getSsl",
        "Secure",
        "List secured domains, or ask whether one is eligible",
        answers.Page[answers.SecuredDomain] | answers.Part[answers.DetailedSecuredDomain] | answers.SslEligibility,
        queries=(DOMAIN, ROOT, *PAGE, SORT, SEARCH, AFTER),
        errors=(400,),
    ),
    Operation(
        "POST",
        "/ssl",
        "secureDomain",
        "Secure",
        "Provision a certificate for a domain, a subdomain or a root",
        answers.Message,
        body=secure.SecureBody,
        example={"domain": "www.customer.example", "applicationUrl": "https://app.acme.example"},
        errors=(502,),
    ),
    Operation(
        "PUT",
        "/ssl",
        "changeSecuredDomain",
        "Secure",
        "Renew a certificate now, or change where a domain leads",
        answers.Message,
        body=secure.SecureChange,
        example={"domain": "www.customer.example"},
        errors=(502,),
    ),
    Operation(
        "DELETE",
        "/ssl",
        "removeSecuredDomain",
        "Secure",
        "Deprovision a domain's certificate",
        answers.Message,
        body=secure.SecureRemoval,
        example={"domain": "www.customer.example"},
        errors=(502,),
    ),
)
