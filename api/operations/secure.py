"""Secured domains."""

from __future__ import annotations

from typing import Final

from api.answers.lists import ListOf, Page
from api.answers.messages import Message
from api.answers.secure import ChangedSecuredDomain, SecuredDomain, SslEligibility
from api.handlers.secure import SecureHandlers
from api.operations.operation import Operation
from api.operations.parameters import AFTER, DOMAIN, METADATA, PAGE, PRODUCT_ERRORS, ROOT, SEARCH, SORT
from api.schemas import secure

OPERATIONS: Final[tuple[Operation[SecureHandlers], ...]] = (
    Operation(
        "GET",
        "/ssl",
        SecureHandlers.get,
        "getSsl",
        "Secure",
        "List secured domains, or ask whether one is eligible",
        Page[SecuredDomain] | ListOf[SecuredDomain] | SslEligibility,
        queries=(DOMAIN, ROOT, *PAGE, SORT, SEARCH, METADATA, AFTER),
        errors=(400,),
    ),
    Operation(
        "POST",
        "/ssl",
        SecureHandlers.post,
        "secureDomain",
        "Secure",
        "Provision a certificate for a domain, a subdomain or a root",
        Message | ChangedSecuredDomain,
        body=secure.SecureBody,
        example={"domain": "www.customer.example", "applicationUrl": "https://app.acme.example"},
        has_representation=True,
        errors=PRODUCT_ERRORS,
    ),
    Operation(
        "PUT",
        "/ssl",
        SecureHandlers.put,
        "changeSecuredDomain",
        "Secure",
        "Renew a certificate now, or change where a domain leads",
        Message | ChangedSecuredDomain,
        body=secure.SecureChange,
        example={"domain": "www.customer.example"},
        has_representation=True,
        errors=PRODUCT_ERRORS,
    ),
    Operation(
        "DELETE",
        "/ssl",
        SecureHandlers.delete,
        "removeSecuredDomain",
        "Secure",
        "Deprovision a domain's certificate",
        Message,
        body=secure.SecureRemoval,
        example={"domain": "www.customer.example"},
        errors=PRODUCT_ERRORS,
    ),
)
