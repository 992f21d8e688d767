"""The one thing to do next about a domain, in a plain sentence.

The rows stand in the order in which an owner puts things right: whose the domain is, and its DNS, since nothing else
works without them; then the certificate; then what serves it; and when all is well, that. Each answers or passes
on.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

from api.notices import NO_EDGE, NO_MONITOR, describe_edge, describe_lapsed, describe_unreached, of_edges
from api.services import ownership_hints as hints
from api.services.diagnosis import Caa, Diagnosis, Dns, DomainHolding
from common.db.orders import OrderState
from common.db.own_certificates import WARNED_DAYS, OwnCertificate
from common.dns import MAX_CHAIN_HOPS, Outcome
from common.edge_probe import Reached
from common.enrolment.outcome import EnrolmentCode
from common.enrolment.ownership import OwnershipClaim, OwnershipVerdict, is_lost_target
from common.enrolment.refusal_words import RESERVED_NAME, WORDS
from common.origin_faults import WORDS as FAULTS

_OWN_ENDS_SOON: Final = timedelta(days=WARNED_DAYS[0])

State: TypeAlias = Literal["ok", "waiting", "action needed", "unknown"]


class NextStep(NamedTuple):
    """What to do next, and how the domain is."""

    state: State
    words: str


def next_step(diagnosis: Diagnosis, now: datetime) -> NextStep:
    """Return the next step of a diagnosis: that of the first row which applies."""
    for row in _ROWS:
        if (step := row(diagnosis, now)) is not None:
            return step
    return NextStep("unknown", "Not everything could be looked at: ask again in a moment.")


def _blocked(diagnosis: Diagnosis, _: datetime) -> NextStep | None:
    """Of a name whose visitors an operator has answered with a reason: nothing here would help."""
    name, ownership = diagnosis.name, diagnosis.ownership
    policy = diagnosis.holding.policy if diagnosis.holding is not None else None
    if policy is not None:
        whose = f"has blocked {name}" if policy.scope == "domain" else "has suspended the application"
        words = f"The operator of this service {whose}, and every request is answered {policy.status}: {policy.reason}"
        return NextStep("action needed", f"{words.removesuffix('.')}. Ask the operator.")
    if ownership is not None and ownership.verdict is OwnershipVerdict.BLOCKED:
        return NextStep("action needed", _sentence(WORDS[EnrolmentCode.BLOCKED].partner or ""))
    if ownership is not None and ownership.verdict is OwnershipVerdict.SUSPENDED:
        return NextStep("action needed", _sentence(WORDS[EnrolmentCode.SUSPENDED].partner or ""))
    return None


def _ownership(diagnosis: Diagnosis, _: datetime) -> NextStep | None:
    """Of a name that is another's, or needs a proof.

    While the partner's cname target does not lead to us (step one), nothing here would help.
    """
    name, ownership = diagnosis.name, diagnosis.ownership
    if ownership is None or diagnosis.dns is None:
        return None
    match ownership.verdict:
        case OwnershipVerdict.RESERVED if not (diagnosis.holding and diagnosis.holding.domains):
            return NextStep("action needed", f"Ask about a customer's domain: {name} is {RESERVED_NAME}.")
        case OwnershipVerdict.HELD | OwnershipVerdict.LEADS_TO_HOLDER | OwnershipVerdict.UNKNOWN:
            target = None if ownership.is_outranked else ownership.cname_target
            words = hints.held(ownership.verdict, name, ownership.application_id, target)
            state: State = "unknown" if ownership.verdict is OwnershipVerdict.UNKNOWN else "action needed"
            return NextStep(state, _sentence(words))
    findings = diagnosis.dns.findings
    if ownership.verdict is OwnershipVerdict.UNDELEGATED:
        return NextStep("action needed", _sentence(hints.undelegated(name, ownership.delegation)))
    if ownership.verdict is OwnershipVerdict.UNPROVEN and findings.leads_here and not findings.lacks_step_one:
        is_outranked = findings.claim is OwnershipClaim.CNAME  # by a target that another application set before
        record = f"create {hints.txt(name, ownership.application_id)}"
        proof = record if is_outranked else hints.prove(name, ownership.application_id, ownership.cname_target)
        return NextStep("action needed", _sentence(f"{proof}: {name} leads here, and nothing shows whose it is"))
    return None


def _dns(diagnosis: Diagnosis, _: datetime) -> NextStep | None:
    dns, domain = diagnosis.dns, diagnosis.name.text
    if dns is None:
        return None
    findings = dns.findings
    if any(is_lost_target(seen.host) for seen in dns.target_expected):
        return NextStep("action needed", _step_one(dns))
    if findings.unresolved is Outcome.NO_NAME:
        return NextStep("action needed", f"Create {_wanted(dns)}: {domain} has no DNS record yet.")
    if findings.unresolved is Outcome.CHAIN:
        words = f"The CNAMEs of {domain} lead in a circle, or over more than {MAX_CHAIN_HOPS} names"
        return NextStep("action needed", f"{words}: create {_wanted(dns)} instead.")
    if findings.unresolved is not None:
        words = f"The DNS of {domain} could not be asked ({findings.unresolved})"
        return NextStep("unknown", f"{words}: check its name servers, and ask again.")
    if findings.lacks_step_one:
        return NextStep("action needed", _step_one(dns))
    if any(seen.host == seen.value for seen in dns.expected):
        words = f"{domain} is the cname target itself, and is not served"
        return NextStep("action needed", f"Ask about a customer's domain that leads to it: {words}.")
    if not findings.is_pointed and not dns.found:
        return NextStep("action needed", f"Create {_wanted(dns)}: {domain} leads nowhere yet.")
    if not findings.is_pointed:
        return NextStep("action needed", f"Change the DNS of {domain} to {_wanted(dns)}: {_leads(dns)}.")
    if findings.unknown is not None:
        words = f"The DNS of the cname target could not be asked ({findings.unknown})"
        return NextStep("unknown", f"{words}: ask again in a moment.")
    return None


def _enrolment(diagnosis: Diagnosis, _: datetime) -> NextStep | None:
    if diagnosis.dns is None or diagnosis.holding is None or diagnosis.holding.domains:
        return None
    power = "" if diagnosis.name.is_root else "POST /power or "
    is_moving = diagnosis.ownership is not None and diagnosis.ownership.verdict is OwnershipVerdict.MOVE
    moving = ", which moves it here from another application" if is_moving else ""
    return NextStep("action needed", f"The DNS is right. Enrol the domain: {power}POST /ssl{moving}.")


def _failing(diagnosis: Diagnosis, now: datetime) -> NextStep | None:
    holding = diagnosis.holding
    if holding is None or holding.order is None or holding.order.last_error is None or holding.order.state == "issued":
        return None
    if holding.own is not None and holding.own.not_after - now > _OWN_ENDS_SOON:
        return None  # `_well` mentions it
    if holding.full is not None and holding.full.free_at > now:
        words = "the certificate authority's limits leave no room for an order until"
        return NextStep("waiting", f"Wait: {words} {_time(holding.full.free_at)}.")
    at_once = "; PUT /ssl tries at once" if any(each.product == "secure" for each in holding.domains) else ""
    again = f"The next attempt is {_when(holding.order.due_at, now)}{at_once}."
    return NextStep("action needed", f"{_remedy(diagnosis, holding.order.last_error)} {again}")


def _issuing(diagnosis: Diagnosis, now: datetime) -> NextStep | None:
    holding, nodes = diagnosis.holding, diagnosis.nodes
    if holding is None or not holding.domains or nodes is None or nodes.is_issuing:
        return None
    if not _is_live(holding, now):
        return NextStep("action needed", NO_MONITOR.hint)
    served = holding.own or holding.certificate
    assert served is not None
    until = _time(served.not_after)
    return NextStep("action needed", f"{NO_MONITOR.hint} The domain's certificate is valid until {until}.")


def _origin(diagnosis: Diagnosis, _: datetime) -> NextStep | None:
    origin = diagnosis.origin
    if origin is None or origin.status != "unreachable":
        return None
    remedy = FAULTS[origin.fault or "connection"].remedy
    return NextStep("action needed", f"Visitors get an error: the origin {origin.url} fails, {origin.words}. {remedy}")


def _unreached(diagnosis: Diagnosis, _: datetime) -> NextStep | None:
    """Return the step where the origin answers the API, but not every edge or every request."""
    if diagnosis.origin is None or not diagnosis.unreached:
        return None
    edges = "; ".join(map(describe_unreached, diagnosis.unreached))
    fault, origin = diagnosis.unreached[0].fault, diagnosis.origin.url
    if fault == "not_http":
        failed = f"the origin {origin} did not answer every request in the last minute as it should: edge {edges}"
        return NextStep("action needed", f"Visitors may get an error: {failed}. {FAULTS[fault].edge_remedy}")
    words = f"the origin {origin} could not be reached from every edge in the last minute: edge {edges}"
    operator = "If that is so already, the operator has to look at the network of the edges named"
    return NextStep("action needed", f"Visitors may get an error: {words}. {FAULTS[fault].edge_remedy} {operator}.")


def _edges(diagnosis: Diagnosis, _: datetime) -> NextStep | None:
    holding, nodes = diagnosis.holding, diagnosis.nodes
    if holding is None or not holding.domains or nodes is None:
        return None
    reach = nodes.edges
    if not reach.alive:
        return NextStep("action needed", NO_EDGE.hint)
    unable = [edge for edge in reach.behind if not edge.follows]
    if unable:
        words = "; ".join(map(describe_edge, unable))
        operator = "The operator has to mend it: `frontage doctor` shows how"
        return NextStep("action needed", f"{len(unable)} of {reach.alive} edges may not serve it: {words}. {operator}.")
    if reach.behind:
        return NextStep("waiting", f"Wait a moment: {of_edges(reach)[0].hint}")
    return None


def _old_certificates(diagnosis: Diagnosis, _: datetime) -> NextStep | None:
    """Of a domain that an edge serves with a certificate of before."""
    served_at = diagnosis.holding.served_at if diagnosis.holding is not None else ()
    old = [edge.label for edge, is_current in served_at if not is_current]
    if not old:
        return None
    words = f"{len(old)} of {len(served_at)} edges may still serve its certificate of before: {', '.join(old)}"
    return NextStep("action needed", f"{words}. The operator has to look at it: `frontage status` names its machine.")


def _on_its_way(diagnosis: Diagnosis, now: datetime) -> NextStep | None:
    holding = diagnosis.holding
    if holding is None or not holding.domains or _is_live(holding, now):
        return None
    if holding.order is not None:
        return NextStep("waiting", "Wait a moment: the certificate is on its way.")
    return NextStep("action needed", "There is no certificate, and none on its way: POST /ssl orders one.")


def _at_risk(diagnosis: Diagnosis, now: datetime) -> NextStep | None:
    """Of a domain that is served, and whose next renewal would fail."""
    holding = diagnosis.holding
    if holding is None or holding.order is None or holding.certificate is None or not _is_live(holding, now):
        return None
    risk = holding.order.risk
    if risk is None or not risk.counts:
        return None
    if holding.own is None:
        until = _time(holding.certificate.not_after)
        return NextStep("action needed", f"The next renewal would fail. {risk.action} The certificate ends {until}.")
    if holding.own.not_after - now > _OWN_ENDS_SOON:
        return None
    words = f"Our certificate, which takes over from yours, could not be renewed. {risk.action}"
    return NextStep("action needed", f"{words} Yours ends {_time(holding.own.not_after)}.")


def _well(diagnosis: Diagnosis, now: datetime) -> NextStep | None:
    holding = diagnosis.holding
    if diagnosis.dns is None or holding is None or diagnosis.nodes is None or not _is_live(holding, now):
        return None
    if diagnosis.unreached is None:
        return NextStep("unknown", "Whether the edges reach the origin could not be asked: ask again in a moment.")
    if diagnosis.origin is not None and diagnosis.origin.status == "unknown":
        return NextStep("unknown", f"The origin could not be asked ({diagnosis.origin.words}): ask again in a moment.")
    if diagnosis.nodes.edges.lost:
        words = "; ".join(map(describe_lapsed, diagnosis.nodes.edges.lost))
        operator = "The operator has to look at it: `frontage status` names its machine"
        return NextStep("unknown", f"Not every edge may serve the domain as it is now: {words}. {operator}.")
    if any(domain.departed_at is not None for domain in holding.domains):
        due_at = holding.order.due_at if holding.order is not None else None
        again = f"it is looked at again {_when(due_at, now)}"
        return NextStep("waiting", f"Wait: the DNS had led elsewhere, and leads here again; {again}.")
    if holding.own is not None:
        return NextStep("ok", _own(holding.own, holding))
    if (waiting := _waiting_renewal(holding.order, now)) is not None:
        return NextStep("ok", f"Nothing to do: the domain is served. {waiting}")
    renewal = holding.order.renew_at if holding.order is not None else None
    when = f" from {_time(renewal)} on" if renewal is not None and renewal > now else ""
    return NextStep("ok", f"Nothing to do: the domain is served, and its certificate renews itself{when}.")


def _own(own: OwnCertificate, holding: DomainHolding) -> str:
    """Of a domain that is served with its partner's certificate."""
    words = f"Nothing to do: the domain is served with your own certificate until {_time(own.not_after)}."
    if holding.certificate is not None:
        return f"{words} Ours stands by, and takes over on its last day."
    error = holding.order.last_error if holding.order is not None else None
    failed = f": the last attempt failed, {error.rstrip('.')}" if error else ""
    return f"{words} Bring the next one by then: ours, which would take over, could not be issued yet{failed}."


def _waiting_renewal(order: OrderState | None, now: datetime) -> str | None:
    """Of a renewal that has begun and was put off."""
    if order is None or order.finished_at is not None or (until := order.waits_until(now)) is None:
        return None
    return f"The renewal of its certificate waits until {_time(until)}: {(order.last_error or '').rstrip('.')}."


_ROWS: Final[tuple[Callable[[Diagnosis, datetime], NextStep | None], ...]] = (
    _blocked,
    _ownership,
    _dns,
    _enrolment,
    _issuing,
    _failing,
    _origin,
    _unreached,
    _edges,
    _old_certificates,
    _on_its_way,
    _at_risk,
    _well,
)


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _is_live(holding: DomainHolding, now: datetime) -> bool:
    if holding.own is not None and holding.own.not_after > now:
        return True
    certificate = holding.certificate
    return certificate is not None and certificate.live_at is not None and certificate.not_after > now


def _remedy(diagnosis: Diagnosis, last_error: str) -> str:
    """Return what would help; where that is unknown, the authority's own message."""
    if diagnosis.uses_acme and diagnosis.caa is not None and diagnosis.caa.forbids:
        return _caa_remedy(diagnosis.caa)
    if (
        diagnosis.uses_acme
        and diagnosis.dns is not None
        and diagnosis.dns.reached in (Reached.ANOTHER, Reached.NO_SERVER)
    ):
        return (
            f"Let plain HTTP requests for {diagnosis.name.text} (port 80) reach us: they reach"
            f" {diagnosis.dns.reached}, so the certificate authority cannot see that the domain is served here."
        )
    return f"The last attempt at a certificate failed: {last_error.rstrip('.')}."


def _caa_remedy(found: Caa) -> str:
    named = ", ".join(found.authorities) or "no authority"
    where = found.authorization.name
    return f"Change the CAA records of {where}: they let {named} issue certificates, and not our authority."


def _step_one(dns: Dns) -> str:
    target = dns.target_expected[0].host
    places = " or ".join(seen.value for seen in dns.target_expected)
    if is_lost_target(target):
        return f"Set another cname target: another application proved the one so far. Point it to {places} by CNAME."
    words = f"Point the cname target {target} to {places} by a CNAME record: it does not lead here."
    lapses_at = dns.sighting.lapses_at if dns.sighting is not None else None
    return words if lapses_at is None else f"{words} {_lapse(lapses_at)}"


def _lapse(at: datetime) -> str:
    return f"One that leads elsewhere until {_time(at)} reserves nothing from then on: another application may set it."


def _wanted(dns: Dns) -> str:
    records = ", ".join(f"{seen.type} {seen.host} {seen.value}" for seen in dns.expected)
    return f"the records {records}" if len(dns.expected) > 1 else f"the record {records}"


def _leads(dns: Dns) -> str:
    return "it leads to " + ", ".join(seen.value for seen in dns.found[-3:])


def _when(at: datetime | None, now: datetime) -> str:
    return "in a moment" if at is None or at <= now else f"at {_time(at)}"


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")
