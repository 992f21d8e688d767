"""The check of a domain's DNS and of its records."""

from __future__ import annotations

from typing import Final

from api.answers.domain_check import DomainCheckAnswer, RecordCheckAnswer
from api.handlers.domain_check import DomainCheckHandlers
from api.operations.operation import Operation
from api.operations.parameters import RECORD
from api.schemas import domain_check
from common.accounts import Permission

OPERATIONS: Final[tuple[Operation[DomainCheckHandlers], ...]] = (
    Operation(
        "POST",
        "/checkdomain",
        DomainCheckHandlers.post_domain,
        "checkDomain",
        "Connect",
        "Say who hosts a domain's DNS, what can be done there, and what stands in the way",
        DomainCheckAnswer,
        body=domain_check.DomainCheckBody,
        example={"domain": "customer.example", "dnsRecords": [RECORD], "checkConflicts": True},
        errors=(400, 404),
        permission=Permission.VIEW,
    ),
    Operation(
        "POST",
        "/checkrecords",
        DomainCheckHandlers.post_records,
        "checkRecords",
        "Connect",
        "Say which records are propagated",
        RecordCheckAnswer,
        body=domain_check.RecordCheckBody,
        example={"domain": "customer.example", "dnsRecords": [RECORD]},
        errors=(400, 404),
        permission=Permission.VIEW,
    ),
)
