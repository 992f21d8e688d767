"""``/openapi.json``: valid, complete, and true when a property tester sends what it can think of."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from openapi_spec_validator import validate

from api.app import build_app
from api.operations import OPERATIONS, UNDOCUMENTED
from common.addresses import tenant_policy
from common.clock import SystemClock
from common.dns import Resolver
from tests.integration.api.conftest import Service
from tests.integration.api.documented import check_answer
from tests.integration.api.partner import Partner
from tests.integration.api.people import organisation, person

CHECKS = "status_code_conformance,content_type_conformance,response_schema_conformance,ignored_auth,unsupported_method"
EXAMPLES = 5


async def reference(service: Service) -> dict[str, Any]:
    async with service.session.get(f"{service.url}/openapi.json") as response:
        assert response.status == 200
        document: dict[str, Any] = await response.json()
        return document


async def test_document_is_valid_openapi(service: Service) -> None:
    validate(await reference(service))


async def test_every_route_has_its_row(service: Service) -> None:
    resolver = Resolver(service.settings.dns_servers, tenant_policy(service.settings))
    app = build_app(service.settings, service.database, service.keyring, resolver, SystemClock(), service.counters)
    routes = {
        (route.method, route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None and route.method not in ("HEAD", "OPTIONS")
    }
    routes = {(method, path) for method, path in routes if not path.startswith(UNDOCUMENTED)}
    assert routes == {(operation.method, operation.path) for operation in OPERATIONS}


async def test_examples_are_understood(service: Service, partner: Partner) -> None:
    """Each body of the reference, sent to an application that has nothing: accepted, or refused for its state alone."""
    operator = await person(service, "ops@x.test", application=partner)
    acme = await organisation(service)
    names = {"organisation": acme.id}
    for operation in OPERATIONS:
        if operation.example is None:
            continue
        path = re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], "customer.example"), operation.path)
        caller = operator if operation.by_key_alone else partner
        answer = await caller.call(operation.method, path, json=operation.example)
        assert answer.status == operation.status or "Invalid" not in answer.message, (operation.id, answer.body)


@pytest.mark.timeout(400)  # some two hundred requests, and as many questions to the DNS
async def test_a_property_tester_finds_no_answer_that_is_not_documented(service: Service, partner: Partner) -> None:
    await send_what_it_can_think_of(service, partner.headers)


@pytest.mark.timeout(400)
async def test_a_property_tester_finds_no_answer_to_a_key_that_is_not_documented(
    service: Service, partner: Partner
) -> None:
    operator = await person(service, "ops@x.test")
    headers = {"Authorization": f"Bearer {operator.key}", "applicationId": partner.id}
    chosen = [f"--include-operation-id={each.id}" for each in OPERATIONS if each.by_key_alone]
    await send_what_it_can_think_of(service, headers, *chosen)


async def send_what_it_can_think_of(service: Service, sent: Mapping[str, str], *chosen: str) -> None:
    options = [f"--max-examples={EXAMPLES}", "--phases=examples,fuzzing", f"--checks={CHECKS}", "--seed=1", *chosen]
    headers = [f"--header={name}: {value}" for name, value in sent.items()]
    program = "import schemathesis.cli; schemathesis.cli.schemathesis()"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, "run", f"{service.url}/openapi.json", *options, *headers, "--no-color"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()[-6000:]
    statuses = {labels[2] for family in service.counters.families() for labels in family.samples if len(labels) == 3}
    assert "500" not in statuses


def test_an_answer_that_is_not_documented_is_noticed() -> None:
    for status, body in ((418, {}), (200, {"message": 1}), (200, {"message": "", "more": 1})):
        try:
            check_answer("POST", "/power", status, body)
        except AssertionError:
            continue
        raise AssertionError((status, body))
