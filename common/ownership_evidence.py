"""What the DNS proves about whose a domain is: the questions behind `common.ownership`.

Rules
    a name is taken from its holder only by answers of the zones' own servers, asked now
    servers of a zone that answer differently, or cannot be asked, prove nothing
    the first cname target that the CNAMEs lead through is the one that counts
"""

from __future__ import annotations

from dataclasses import dataclass

from common.db.applications import Application
from common.dns import Outcome, Pass
from common.names import DomainName
from common.ownership import Claim, Evidence, txt_record


@dataclass(frozen=True, slots=True)
class Party:
    """An application, and the cname targets that prove a domain to be its own. Names are in canonical form."""

    application_id: str
    cname_targets: frozenset[str]

    @classmethod
    def of(cls, application: Application, *cname_targets: str) -> Party:
        """With all of its targets, where none are given."""
        targets = cname_targets or (application.cname_target, application.secure_cname_target)
        return cls(application.id, frozenset(filter(None, targets)))


async def has_txt_record(questions: Pass, name: DomainName, application_id: str) -> bool:
    """Whether a TXT record gives the domain, which no application holds, to this one."""
    host, value = txt_record(name.text, application_id)
    return value in (await questions.ask_confirmed(host, "TXT")).values


async def find_evidence(questions: Pass, name: DomainName, claimant: Party, holder: Party) -> Evidence:
    """What the zones' own servers say for `claimant`, about a domain that `holder` holds."""
    ask = questions.authoritative
    goals = claimant.cname_targets | holder.cname_targets
    chain = await ask.follow(name.text, goals - {name.text})
    reached = chain.names[-1] if chain.end is Outcome.RECORDS and chain.names else None
    record = await ask.ask(txt_record(name.text, claimant.application_id)[0], "TXT")
    named = {party: txt_record(name.text, party.application_id)[1] in record.values for party in (claimant, holder)}
    claim = Claim.CNAME if reached in claimant.cname_targets else Claim.TXT if named[claimant] else None
    if reached in holder.cname_targets or named[holder]:
        return Evidence(claim, holder.application_id, leads_to_holder=True)
    is_settled = chain.end.is_known and record.outcome.is_known and not (chain.is_disputed or record.is_disputed)
    return Evidence(claim, holder.application_id, leads_to_holder=False if is_settled else None)
