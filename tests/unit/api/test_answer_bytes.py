"""What answers look like on the wire, to the byte: names, order, nulls and formats of fields.

`answers.golden` has a line for each case. A change there is a change that clients see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from api.answers import application as applications
from api.answers import (
    audit,
    connect,
    diagnosis,
    domain_check,
    installation,
    lists,
    monitor,
    organisations,
    power,
    secure,
    sharing,
    traffic,
    webhooks,
)
from api.schemas import name_lists, queries
from api.schemas.traffic import PERIODS
from api.services.audit import AuditPage
from api.services.diagnosis import Caa, Diagnosis, Dns, DomainHolding, Nodes, Ownership, SeenRecord
from api.services.domain_check import Assessed, DomainCheck
from api.services.next_step import next_step
from api.services.origin_state import OriginState
from api.services.record_check import CheckedRecord, RecordStatus
from common.accounts import Permission
from common.caa import Authorization
from common.db.application_removal import Extent
from common.db.applications import Application
from common.db.audit import AuditEntry
from common.db.batches import BatchProgress, FailedItem
from common.db.ca_ledger import LimitReached
from common.db.certificates import InService
from common.db.connect_configurations import RegisteredConfiguration
from common.db.connect_flows import read_flow
from common.db.deliveries import Delivery
from common.db.domain_pages import ListedDomain
from common.db.domains import Domain
from common.db.edge_nodes import (
    SERVING,
    Condition,
    EdgeDescription,
    EdgeNode,
    EdgeTraffic,
    FailedUpgrade,
    UnreachedOrigin,
    UnusableCertificates,
)
from common.db.events import Event
from common.db.issuance_progress import IssuanceProgress
from common.db.monitor_health import MonitorHealth
from common.db.monitor_nodes import MonitorNode
from common.db.monitored_domains import Labels, LastCheck, MonitoredDomain, MonitoredKey
from common.db.orders import OrderState
from common.db.policies import Policy
from common.db.request_effects import Effect
from common.db.revocations import RevocationBacklog
from common.db.shares import Share
from common.db.status import Edge, Expiry, FailingOrders, InstallationStatus, LimitUse, QueueLength, Unrenewed
from common.db.target_sightings import TargetSighting
from common.db.traffic import Point
from common.db.user_keys import UserKey
from common.db.users import Member, Membership, Organisation, User
from common.db.webhook_endpoints import Endpoint
from common.dns import Outcome
from common.dns.evidence import Statement
from common.dns.questions import Answer
from common.domain_check.conflicts import Conflict, Rule
from common.domain_check.providers import CAREFUL, Provider
from common.domain_check.registration import Registration
from common.edge_probe import Reached
from common.enrolment.eligibility import EligibilityFindings
from common.enrolment.ownership import OwnershipClaim, OwnershipVerdict
from common.liveness import Reach
from common.records import Record
from common.traffic import FIGURES
from tests.unit.stored_flow import AT, LATER, NAME, STORED_FLOW

GOLDEN = Path(__file__).with_name("answers.golden")
LISTED = ListedDomain(
    NAME.text, "power", "https://o.test/a", ("/s", "/é"), "active", None, AT, LATER, "internal", LATER
)
SECURED = replace(LISTED, product="secure", redirect_to="https://else.test/")
BARE = replace(SECURED, redirect_to=None, issuer=None, not_after=None, status="inactive")
RECORD = {"priority": "10", "ttl": 300, "value": "mx.test", "type": "MX", "host": "@"}
MONITORED = MonitoredDomain(
    "mon_1", MonitoredKey("app_1", "customer.test", "shop"), Labels("u", "j", "e@x.test"), "api", AT,
    [RECORD, {"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 60}], [RECORD], [], AT, LATER, LATER,
)  # fmt: skip
UNCHECKED = replace(
    MONITORED, records_present=None, records_missing=None, missing_records_last_detected=None, last_checked_at=None
)
APPLICATION = Application(
    "app_1", "Acme", "apps.acme.test", "ssl.acme.test", "https://o.test", "https://hooks.test", ("/static",),
    "premium", b"s", None, b"w", None, b"a", b"b", "origin", "name.test", True, b"k", None, False, True, 4096, AT,
    LATER, "org_1",
)  # fmt: skip
PLAIN = replace(
    APPLICATION, secure_cname_target=None, application_url=None, webhook_url=None, service_auth=None,
    next_service_auth=None, signature_key=None, buffer_uploads_bytes=None, deleting_at=None, organisation_id=None,
)  # fmt: skip
ACME = Organisation("org_1", "Acme", AT)
ADA = User("usr_1", "ada@acme.test", True, True, AT, LATER)
KEY = UserKey("key_1", "ci", Permission.CHANGE, AT, LATER, None)
EDGE = EdgeNode("0123456789", "edge-a", 1, SERVING, AT)
TARGET = SeenRecord("CNAME", "apps.partner.test", "power.frontage.test")
POINTED = SeenRecord("CNAME", NAME.text, TARGET.host)
DNS = Dns(
    EligibilityFindings(OwnershipClaim.CNAME, None, Outcome.RECORDS), (POINTED,), (POINTED, TARGET), (TARGET,),
    (TARGET,), Reached.US, TargetSighting(TARGET.host, AT, LATER, False),
)  # fmt: skip
ORDER = OrderState("failed", "renewal", 2, "no.", AT, LATER, {"dns": 1.5}, AT, AT, AT, None, None)
WELL = Diagnosis(
    NAME,
    True,
    DNS,
    Caa(Authorization(Outcome.RECORDS, NAME.text, ('0 issue "ca.test"',)), ("ca.test",), forbids=True),
    DomainHolding(
        (Domain(NAME.text, "secure", "app", "https://origin.test", (), "active", "live", None),),
        InService("internal", AT, LATER, AT, AT),
        ORDER,
        LimitReached("names", 50, LATER),
        Policy("domain", NAME.text, 403, "Phishing", AT),
    ),
    Nodes(is_issuing=True, edges=Reach(2, (EDGE,), (EDGE,))),
    OriginState("https://origin.test", "ok"),
    Ownership(OwnershipVerdict.ENROL, OwnershipClaim.CNAME, "app_1", TARGET.host),
    (UnreachedOrigin(EDGE, "timeout"),),
)
UNKNOWN = Diagnosis(NAME, False, None, None, None, None, None, unreached=None)
FREE = replace(
    WELL, holding=DomainHolding((), None, None, None), origin=None, unreached=(),
    caa=Caa(Authorization(Outcome.NO_DATA), (), forbids=False), nodes=Nodes(is_issuing=False, edges=Reach(0, ())),
)  # fmt: skip
DESCRIBED = EdgeNode(
    "0123", "edge-b", 2, Condition("serving", "It has no disk."), LATER,
    EdgeDescription("1.0.0", AT, FailedUpgrade(AT, "It ended.")), EdgeTraffic(10, 1), UnusableCertificates(1, "a.test"),
    "4567",
)  # fmt: skip
STATUS = InstallationStatus(
    AT, 7, [Edge(DESCRIBED, True, 5), Edge(EDGE, False, 6)],
    [MonitorNode("mon_1", "host", "acme", ("orders",), AT, LATER, True, "1.0.0")],
    MonitorHealth(False, "It ended.", AT),
    2, [QueueLength("orders", 1, 1.5), QueueLength("checks", 0, None)], [Expiry(None, 0, 1, "a.test"), Expiry(0, 7, 0)],
    [Unrenewed(7, 1, "a.test")], [LimitUse("acme", "orders", "", 1, 300, LATER)],
    [FailingOrders("It ended.", 1, "a.test")], IssuanceProgress(1, 2, 3, 4, 5, LATER), RevocationBacklog(1, 2.5, None),
    1, 0,
)  # fmt: skip
FLOW = read_flow(STORED_FLOW)
WAITING = read_flow(
    STORED_FLOW | {"state": "waiting", "way": "domain_connect", "looked": None, "plan": None, "journal": []}
    | {"handover": {"url": "https://dc.test", "state": "secret"}, "statuses": [], "error": None, "enrolments": []}
)  # fmt: skip
CHECKING = read_flow(
    STORED_FLOW | {"looked": {"steps": {"provider": "running", "records": "running", "ways": "waiting"}}}
    | {"state": "checking", "since": None, "way": None, "plan": None, "journal": [], "handover": None}
)  # fmt: skip
CHOOSING = read_flow(
    STORED_FLOW | dict.fromkeys(["user_id", "domain", "subdomain", "looked", "plan", "way", "handover", "error"])
    | {"state": "choosing", "since": None, "due_at": None}
    | {"requested": [], "journal": [], "statuses": [], "enrolments": []}
)  # fmt: skip
SHARE = Share(
    "sh_1", "app_1", "customer.test", None, [RECORD], {"power": True}, "job_1", "u", AT, LATER, True, None, None
)
PROVIDER = Provider("p", "Provider", replace(CAREFUL, caa=True))
MX = Record("MX", "@", "mx.test", 300, "10")
CNAME = Record("CNAME", "shop", "apps.test", 300, None)
CHECK = DomainCheck(
    Assessed(PROVIDER, "automatic"),
    Registration(True, False),
    Assessed(Provider("", "Unknown"), "manual"),
    [Conflict(MX, next(iter(Rule)), "In the way."), Conflict(CNAME, next(iter(Rule)), "In the way.", "v=spf1 -all")],
)
STATEMENT = Statement(
    AT, "authority", "192.0.2.53:53", (NAME.text, "A"), Answer(Outcome.RECORDS, ("10.0.0.1",), ttl_seconds=60)
)
EVENT = Event("evt_1", "domain.power", "app_1", "customer.test", "shop", 4, {"power_status": "active"}, AT, "delivered")
DELIVERY = Delivery("evt_1", "domain.power", "customer.test", None, "failed", None, 3, "500", [], AT, LATER, None)
ENTRY = AuditEntry("aud_1", AT, "api", "ada", "0" * 16, "app_1", "domain.enrolled", NAME.text, None, {"a": 1})
PAGE = queries.ListQuery(page=1, size=2)
DAY = PERIODS["day"]
COUNTS = [3, *[0] * (FIGURES - 3), 7, 2]

CASES: dict[str, Callable[[], Any]] = {
    "powered": lambda: lists.page_of([power.powered_domain(LISTED)], 7, PAGE),
    "part of powered": lambda: lists.list_of([power.powered_domain(LISTED)], "more", 50),
    "secured": lambda: [secure.secured_domain(SECURED), secure.secured_domain(BARE)],
    "monitored": lambda: [monitor.monitored_domain(each) for each in (MONITORED, UNCHECKED)],
    "detailed monitored": lambda: monitor.monitored_domain_with_times(MONITORED),
    "batch": lambda: [
        monitor.batch_status("b", BatchProgress("app_1", True, 2, (FailedItem("a.test", None, "no"),))),
        monitor.batch_status("b", BatchProgress("app_1", False, 0, ())),
    ],
    "service status": lambda: monitor.service_status(MonitorHealth(True, None, AT)),
    "last check": lambda: [
        monitor.last_check(
            MONITORED.key,
            LastCheck(
                "missing",
                AT,
                [
                    {"role": "resolver", "server": "10.0.0.2:53", "values": ["10.1.1.1"], "outcome": "records"},
                    {"at": "x", "role": "zone", "server": "192.0.2.1:53", "name": "n", "type": "A", "outcome": "none"},
                ],
            ),
        ),
        monitor.last_check(MONITORED.key, LastCheck("unchecked", None, None)),
    ],
    "application": lambda: [
        applications.application_answer(APPLICATION, "<p>", Extent(3, (), 4, 5), shows_query=True),
        applications.application_answer(PLAIN, None, shows_query=True),
        applications.listed_application(APPLICATION),
    ],
    "organisations": lambda: lists.list_of(
        [organisations.organisation(ACME, "owner"), organisations.organisation(ACME)],
        name_lists.following([("a",), ("b",)], name_lists.NameQuery(None, 2)),
        2,
    ),
    "members": lambda: organisations.member(Member(ADA, "viewer")),
    "account": lambda: organisations.account(ADA, [Membership(ACME, "owner")], KEY, AT),
    "keys": lambda: organisations.key(KEY, LATER),
    "audit": lambda: audit.audit_page(AuditPage([ENTRY], [Effect("change", NAME.text, "applied", AT)], ENTRY.id), 50),
    "events": lambda: webhooks.events_page([EVENT], 1, shows_links=True),
    "deliveries": lambda: webhooks.deliveries_page([DELIVERY], 2),
    "endpoint": lambda: [
        webhooks.endpoint("https://hooks.test", Endpoint(AT, AT, None, "500"), shows_query=True),
        webhooks.endpoint(None, Endpoint(), shows_query=True),
    ],
    "traffic": lambda: traffic.traffic(NAME.text, DAY, [Point(AT, COUNTS)]),
    "diagnosis": lambda: [diagnosis.diagnosis_answer(each, next_step(each, AT), AT) for each in (WELL, FREE, UNKNOWN)],
    "domain check": lambda: [
        domain_check.domain_check(CHECK),
        domain_check.domain_check(replace(CHECK, zone_provider=None, conflicts=[])),
        domain_check.domain_check(replace(CHECK, zone_provider=None, conflicts=None)),
    ],
    "record check": lambda: domain_check.record_check(
        "customer.test",
        [
            CheckedRecord(MX, RecordStatus.MISSING, (STATEMENT,), AT),
            CheckedRecord(CNAME, RecordStatus.PROPAGATED, (), None),
        ],
    ),
    "flow": lambda: [
        connect.flow_answer(FLOW),
        connect.flow_answer(FLOW, {NAME.text: "live"}),
        connect.flow_answer(WAITING),
        connect.flow_answer(CHECKING),
        connect.flow_answer(CHOOSING),
    ],
    "operations": lambda: installation.operations(STATUS, ["It ended."], ["It began."]),
    "shared link": lambda: sharing.shared_link(SHARE, "https://frontage.test"),
    "configuration": lambda: sharing.configuration(RegisteredConfiguration("cfg_1", "app_1", {"a": 1}, 1, AT, None)),
}


def _golden() -> dict[str, bytes]:
    lines = (line.partition(b"\t") for line in GOLDEN.read_bytes().splitlines())
    return {name.decode(): content for name, _, content in lines}


@pytest.mark.parametrize("name", CASES)
def test_an_answer_keeps_its_bytes(name: str) -> None:
    assert orjson.dumps(CASES[name]()) == _golden()[name]


def test_every_line_has_a_case() -> None:
    assert set(_golden()) == set(CASES)
