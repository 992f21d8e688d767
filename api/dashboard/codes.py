"""Words for the codes of the audit log, of events and of the DNS.

Pages show the words, and the code beside them only where a reader may search for it. A code without words of its own
is shown as words all the same: ``user_key.create`` as ``User key: create``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ACTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "alarms.release": "Held alarms sent",
        "application.create": "Application made",
        "application.delete": "Application deleted",
        "application.end_signature": "Signature switched off",
        "application.error_page": "Error page changed",
        "application.resume": "Suspension ended",
        "application.rotate_client_secret": "Client secret rotated",
        "application.rotate_signature_key": "Signature key rotated",
        "application.rotate_webhook_secret": "Webhook secret rotated",
        "application.set": "Settings changed",
        "application.suspend": "Application suspended",
        "application.target_lost": "Cname target lost to another application",
        "certificate.bring": "Own certificate stored",
        "certificate.end_own": "Own certificate ended",
        "certificate.keep_account_key": "Change of the ACME account key withdrawn",
        "certificate.renew": "Renewal requested",
        "certificate.request": "Signing request made",
        "certificate.replace": "Replacement of certificates requested",
        "certificate.revoke": "Certificate revoked",
        "certificate.roll_account_key": "Change of the ACME account key requested",
        "configuration.register": "Configuration for browsers registered",
        "configuration.remove": "Configuration for browsers deleted",
        "domain.block": "Name blocked",
        "domain.moved": "Domain moved to another application",
        "domain.prepare": "Domain prepared",
        "domain.recheck": "DNS check requested",
        "domain.released": "Domain released",
        "domain.status_link": "Link to a customer's page made",
        "domain.status_link_end": "Link to a customer's page revoked",
        "domain.unblock": "Name unblocked",
        "domain.unprepare": "Preparation ended",
        "edge.forget": "Lost edge forgotten",
        "member.put": "Member added or role set",
        "member.remove": "Member removed",
        "monitor.add": "Monitoring started",
        "monitor.remove": "Monitoring ended",
        "monitor.update": "Monitored records changed",
        "organisation.create": "Organisation made",
        "passkey.add": "Passkey added",
        "passkey.refused": "Passkey refused",
        "passkey.remove": "Passkey removed",
        "power.enrol": "Domain powered",
        "power.remove": "Power ended",
        "power.update": "Powered domain changed",
        "secure.enrol": "Domain secured",
        "secure.remove": "Secure ended",
        "secure.update": "Secured domain changed",
        "user.bind": "Account of the provider bound",
        "user.create": "User made",
        "user.delete": "User deleted",
        "user.end_credentials": "Sessions, keys and links ended",
        "user.link": "Sign-in link made",
        "user.operator": "Operator's right changed",
        "user.set_password": "Password set",
        "user.sign_in": "Signed in",
        "user.sign_out": "Sessions ended",
        "user.unbind": "Account of the provider forgotten",
        "user_key.create": "API key made",
        "user_key.revoke": "API key revoked",
        "webhook.enable": "Webhook enabled, pending sent",
        "webhook.replay": "Event sent again",
        "webhook.replay_failed": "Failed events sent again",
        "webhook.test": "Test event sent",
    }
)
"""By the audit log's ``action``."""

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {kind: kind.replace("_", " ").capitalize() for kind in sorted({each.partition(".")[0] for each in ACTIONS})}
)
"""What the names of actions begin with, in words."""

EVENT_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "domain.added": "Domain added",
        "domain.certificate_expiring": "Own certificate nears its end",
        "domain.flow.completed": "Connect flow completed",
        "domain.flow.undone": "Connect flow undone",
        "domain.origin_failing": "Origin fails",
        "domain.origin_recovered": "Origin answers again",
        "domain.power": "Power status",
        "domain.prepared": "Domain prepared",
        "domain.propagation.timeout": "DNS change not seen in time",
        "domain.renewal_at_risk": "Renewal at risk",
        "domain.record_missing": "Records missing",
        "domain.record_restored": "Records restored",
        "domain.secure": "Secure status",
        "webhook.test": "Test event",
    }
)

OUTCOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cname_chain": "CNAME records in a circle, or too many",
        "nodata": "No record of this type",
        "nxdomain": "The name does not exist",
        "records": "Records",
        "servfail": "The server failed to answer",
        "timeout": "No answer in time",
    }
)
"""Of a DNS question (`common.dns.Outcome`)."""

CLAIMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "address": "its address",
        "cname": "its CNAME record",
        "delegation": "its delegated challenge",
        "operator": "an operator",
        "txt": "its TXT record",
    }
)
"""How a domain was shown to be the application's."""

WAYS: Final[Mapping[str, str]] = MappingProxyType(
    {"api": "API", "command": "command line", "dashboard": "dashboard", "monitor": "monitor"}
)
"""By which a change was made (`common.actors.Way`)."""


STEPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "domain": "Choosing a domain",
        "inspection": "Domain is looked at",
        "plan": "Reading what changes",
        "writing": "Changes are written",
        "records": "Waiting for the records",
        "enrolment": "Being enrolled",
        "live": "Live",
    }
)
"""Words for the steps of a flow, by `common.db.connect_flow_list.Step`."""

FLOW_WAYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "manual": "By hand",
        "domain_connect": "Domain Connect",
        "provider_api": "Provider’s API",
        "dynamic_update": "Dynamic update",
    }
)
"""Words for how a flow's records are set, by `common.flows.ways.WayName`."""


def action(code: str) -> str:
    """Return an action of the audit log in words."""
    return ACTIONS.get(code) or _as_words(code)


def event_type(code: str) -> str:
    """Return the type of an event in words."""
    return EVENT_TYPES.get(code) or _as_words(code)


def outcome(code: str) -> str:
    """Return the outcome of a question to the DNS in words."""
    return OUTCOMES.get(code) or _as_words(code)


def claim(code: str | None) -> str:
    """Return how a domain shows whose it is, in words."""
    return CLAIMS.get(code, code) if code else "unknown"


def way(code: str) -> str:
    """Return the way by which a change was made, in words."""
    return WAYS.get(code, code)


def _as_words(code: str) -> str:
    text = code.replace("_", " ").replace(".", ": ")
    return f"{text[:1].upper()}{text[1:]}"
