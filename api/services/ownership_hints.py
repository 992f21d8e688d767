"""What to do about a name that is not the application's to have, or not proven to be: plain sentences."""

from __future__ import annotations

from collections.abc import Collection

from common.db.target_contests import CnameTargetTaken
from common.enrolment.delegations import CnameRecord
from common.enrolment.eligibility import EligibilityFindings
from common.enrolment.outcome import EnrolmentCode
from common.enrolment.ownership import OwnershipVerdict, txt_record
from common.enrolment.refusal_words import WORDS
from common.names import DomainName, base_of


def eligibility(
    verdict: OwnershipVerdict, findings: EligibilityFindings, name: DomainName, application_id: str
) -> str | None:
    """Beside an answer that is no error."""
    if verdict in (OwnershipVerdict.RESERVED, OwnershipVerdict.BLOCKED, OwnershipVerdict.SUSPENDED):
        return WORDS[EnrolmentCode(verdict.value)].partner
    return unproven(name, application_id) if verdict is OwnershipVerdict.UNPROVEN and findings.is_eligible else None


def undelegated(name: DomainName, record: CnameRecord | None) -> str:
    """Return the hint for a wildcard whose challenge is not delegated; without a record there is no zone for that."""
    if record is None:
        return "a wildcard needs a delegated challenge: the operator of this service sets FRONTAGE_ACME_DNS_ZONE first"
    return (
        f"a wildcard is enrolled where its challenge is delegated: create the CNAME record {record.host} with the value"
        f" {record.value}, then try again; POST /domains/{name}/prepare waits for it"
    )


def unproven(name: DomainName, application_id: str) -> str:
    """Return the hint for a name that leads here, which alone does not show whose it is."""
    return f"it leads here, but not by the CNAME that shows whose it is: create {txt(name, application_id)}"


def held(verdict: OwnershipVerdict, name: DomainName, application_id: str, cname_target: str | None) -> str:
    """Return the hint for a name that another application holds.

    `cname_target`: None where a CNAME to the own one proves nothing, because the DNS leads through one that another
    application set before.
    """
    if verdict is OwnershipVerdict.LEADS_TO_HOLDER:
        return f"another application holds {name}, and the DNS still leads to it: {_remove(name)}, then POST again"
    if verdict is OwnershipVerdict.UNKNOWN:
        return (
            f"another application holds {name}, and its zone's own name servers could not be asked, or do not agree"
            " yet: POST again in a minute"
        )
    steps = f"{prove(name, application_id, cname_target)}, {_remove(name)}, then POST again"
    return f"another application holds {name}. To move it here: {steps}"


def prove(name: DomainName, application_id: str, cname_target: str | None) -> str:
    """Return what in the DNS shows that the name is the application's.

    Without `cname_target` that is the TXT record alone.
    """
    if name.is_wildcard:
        return f"delegate the challenge of {base_of(name.text)} as POST /domains/{name}/prepare shows"
    record = f"create {txt(name, application_id)}"
    return record if name.is_root or cname_target is None else f"point {name} to {cname_target} by CNAME, or {record}"


def stray(
    findings: EligibilityFindings, name: DomainName, application_id: str, cname_target: str, servers: Collection[str]
) -> str:
    """Return the hint for a name that the application holds by a transfer, whose DNS does not lead to it."""
    if findings.leads_here:
        proof = prove(name, application_id, cname_target)
        return f"Its DNS leads here by another application's cname target, which can take it back: {proof}."
    record = f"A or AAAA records of {' and '.join(sorted(servers))}" if name.is_root else f"a CNAME to {cname_target}"
    known = findings.unresolved is None or findings.unresolved.is_known
    seen = "Its DNS does not lead here" if known else "Its DNS could not be asked"
    return f"{seen}: no certificate is issued, and no visitor comes, before {name} has {record}."


def taken_target(taken: CnameTargetTaken, application_id: str | None) -> str:
    """Another application has or had what is to be a cname target; an application that is yet to be made has no id."""
    contest = taken.contests[0]
    if contest.rival == application_id:
        return f"{contest}: DELETE it first"
    if application_id is None:
        steps = "make the application with another target, then prove this one by a TXT record with its id"
        return f"{contest}. If it is yours, {steps}, and set it"
    old = f"remove any TXT record at {txt_record(contest.target, '')[0]} that names another application"
    if contest.kind == "domain":
        old += f", and any CNAME of {contest.target} to the other application's target"
    return f"{contest}. If it is yours, create {_txt(contest.target, application_id)}, {old}, and set it again"


def txt(name: DomainName, application_id: str) -> str:
    """Return the hint that names the TXT record."""
    return _txt(name.text, application_id)


def _txt(name: str, application_id: str) -> str:
    host, value = txt_record(name, application_id)
    return f"the TXT record {host} with the value {value}"


def _remove(name: DomainName) -> str:
    host, _ = txt_record(name.text, "")
    cname = "" if name.is_root else "the CNAME to the other application's target and "
    return f"remove {cname}any TXT record at {host} that names another application"
