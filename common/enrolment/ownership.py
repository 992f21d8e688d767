"""Whose a domain is: what the DNS proves and what the database remembers, and what follows.

Claims
    cname     the domain's CNAMEs lead through the application's own cname target: proof
    txt       the record ``_frontage.<domain> TXT application=<applicationId>``: proof, for any name
    delegation  the domain's ``_acme-challenge`` leads to the application's label: proof, of its wildcard too
    address   the domain only leads to us (its addresses are ours, or our edge answers behind a CDN): it shows where
              the domain leads, not whose it is
    operator  an operator's word, in an import: takes a free name that is no application's cname target

Rules
    our own names, and the application's own cname targets, are never enrolled
    a proof takes a free name, also one that another application gave as its cname target
    where CNAMEs lead through the cname targets of several applications, they prove the name for the one whose target
        was set first: giving a name of another's as one's own target takes nothing from it
    an address takes a free name from no other application: only the last holder may come back by it, or, for a root
    that no other application held for `REMEMBERED_DAYS`, any application; it takes no application's cname target
    a held name moves to a claimant with a proof, once the DNS no longer leads to its holder by a proof
    what could not be asked is no proof, and moves nothing
    a wildcard is taken by a delegation alone, and never where it would cover one of our own names; a name beneath it
    that another application claims is taken by a proof
    a cname target moves to a claimant whose TXT record its zone has, and no TXT record of its application; that one
        has `lost_target` in its place, which never resolves, until it gets another

The DNS is asked by `common.enrolment.eligibility` (where it leads) and `common.enrolment.ownership_evidence` (proofs);
the rows are `common.db.ownership`'s.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

from common.errors import InvalidName
from common.names import DomainName, base_of, parse_host_name
from common.settings import Settings

REMEMBERED_DAYS = 30
"""How long a name remembers who held it."""

TXT_LABEL = "_frontage"

_NEVER_RESOLVES = ".invalid"


class OwnershipClaim(StrEnum):
    """How a domain shows that it belongs to an application."""

    CNAME = "cname"
    TXT = "txt"
    DELEGATION = "delegation"  # of its ACME challenge
    ADDRESS = "address"
    OPERATOR = "operator"  # enrolled by an operator's word; no DNS was asked

    @property
    def is_proof(self) -> bool:
        """Return whether the claim proves whose the domain is."""
        return self in (OwnershipClaim.CNAME, OwnershipClaim.TXT, OwnershipClaim.DELEGATION)


class OwnershipVerdict(StrEnum):
    """What an application may do with a name. The values, but for the first two, are what the API shows as ``code``."""

    ENROL = "enrol"
    MOVE = "move"  # to the claimant, away from its holder
    BLOCKED = "domain_blocked"  # by an operator, for any application
    SUSPENDED = "application_suspended"  # by an operator, for any name
    RESERVED = "reserved"  # one of our own names, or a cname target of the claimant
    UNPROVEN = "txt_record_needed"
    UNDELEGATED = "delegation_needed"  # a wildcard, whose challenge is not delegated to the claimant
    HELD = "held"  # by another application, and nothing proves it the claimant's
    LEADS_TO_HOLDER = "leads_to_holder"  # the claimant has a proof, and so has the holder
    UNKNOWN = "held_unknown"  # held, and the zone's own servers could not be asked


@dataclass(frozen=True, slots=True)
class OwnershipRecord:
    """What the database knows of a name.

    `held_since`: since when `holder` holds it. `former_holders` are applications that held it within
    `REMEMBERED_DAYS`, the last one first. `is_target`: it is an application's cname target, and `is_own_target`: the
    claimant's. `is_above_foreign_target`: another application's cname target stands beneath it.
    `is_beneath_foreign_wildcard`: another application holds the wildcard that stands for it. `is_blocked`: an operator
    has blocked it. `is_suspended`: an operator has suspended the claimant.
    """

    holder: str | None = None
    former_holders: tuple[str, ...] = ()
    is_target: bool = False
    is_own_target: bool = False
    is_above_foreign_target: bool = False
    is_beneath_foreign_wildcard: bool = False
    is_blocked: bool = False
    is_suspended: bool = False
    held_since: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Party:
    """An application, and the cname targets that prove a domain to be its own. Names are in canonical form."""

    application_id: str
    cname_targets: frozenset[str]
    organisation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A cname target, and the application whose it is since `set_at`."""

    name: str
    application_id: str
    organisation_id: str | None
    set_at: datetime


@dataclass(frozen=True, slots=True)
class OwnershipEvidence:
    """DNS evidence for a claimant.

    `against`: the holder that `leads_to_holder` is about; None there means that
    the zone's own servers could not be asked. `is_outranked`: CNAMEs lead through the claimant's cname target, and
    prove the name another's, whose target was set before.
    """

    claim: OwnershipClaim | None
    against: str | None = None
    leads_to_holder: bool | None = None
    is_outranked: bool = False


@dataclass(frozen=True, slots=True)
class OwnNames:
    """The hosts of our own settings. Names are in canonical form."""

    names: frozenset[str]

    @classmethod
    def of(cls, settings: Settings) -> OwnNames:
        """Read our own hosts from the settings."""
        hosts = (settings.power_target, settings.ssl_target, urlsplit(settings.base_url).hostname or "")
        return cls(frozenset(filter(None, map(_canonical, hosts))))

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def reserve(self, name: DomainName) -> bool:
        """Return whether the name is one of our own, or a wildcard of one or above one."""
        base = base_of(name.text)
        return base in self.names or (name.is_wildcard and self.has_beneath(base))

    def has_beneath(self, above: str) -> bool:
        """Return whether one of our own names is beneath the name `above`."""
        return any(name.endswith(f".{above}") for name in self.names)


def judge_claim(
    name: DomainName, claimant: str, standing: OwnershipRecord, evidence: OwnershipEvidence, own: OwnNames
) -> OwnershipVerdict:
    """Decide whether `claimant` may enrol `name`.

    That the name leads to us is a question of its own (`common.enrolment.eligibility`): without a claim the verdict on
    a free name is UNPROVEN.
    """
    if own.reserve(name) or standing.is_own_target:
        return OwnershipVerdict.RESERVED
    if standing.is_blocked:
        return OwnershipVerdict.BLOCKED
    if standing.is_suspended:
        return OwnershipVerdict.SUSPENDED
    if standing.holder == claimant:
        return OwnershipVerdict.ENROL
    if evidence.claim is OwnershipClaim.OPERATOR:
        return _judge_by_operator(name, standing)
    if standing.holder is not None:
        return _judge_held(standing.holder, evidence)
    if name.is_wildcard:
        is_delegated = evidence.claim is OwnershipClaim.DELEGATION
        return OwnershipVerdict.ENROL if is_delegated else OwnershipVerdict.UNDELEGATED
    if evidence.claim is None:
        return OwnershipVerdict.UNPROVEN
    if evidence.claim.is_proof or _may_take_by_address(name, claimant, standing, own):
        return OwnershipVerdict.ENROL
    return OwnershipVerdict.UNPROVEN


def _judge_held(holder: str, evidence: OwnershipEvidence) -> OwnershipVerdict:
    if evidence.against != holder or evidence.leads_to_holder is None:
        return OwnershipVerdict.UNKNOWN
    if evidence.claim is None or not evidence.claim.is_proof:
        return OwnershipVerdict.HELD
    return OwnershipVerdict.LEADS_TO_HOLDER if evidence.leads_to_holder else OwnershipVerdict.MOVE


def _judge_by_operator(name: DomainName, standing: OwnershipRecord) -> OwnershipVerdict:
    if standing.holder is not None:
        return OwnershipVerdict.HELD
    if name.is_wildcard:
        return OwnershipVerdict.UNDELEGATED
    return OwnershipVerdict.RESERVED if standing.is_target else OwnershipVerdict.ENROL


def _may_take_by_address(name: DomainName, claimant: str, standing: OwnershipRecord, own: OwnNames) -> bool:
    if standing.is_target or standing.is_beneath_foreign_wildcard:
        return False
    if standing.former_holders:
        return standing.former_holders[0] == claimant
    return name.is_root and not standing.is_above_foreign_target and not own.has_beneath(name.text)


def is_proof(way: Collection[str], claimant: Party, targets: Sequence[Target]) -> bool:
    """Return whether CNAMEs that lead through the names `way` prove a domain for `claimant`.

    `targets` are the cname targets among these names, the one that was set first first. Those of the claimant's
    organisation do not count against it.
    """
    if claimant.cname_targets.isdisjoint(way):
        return False
    rivals = (target for target in targets if not _is_of(target, claimant))
    first_rival = next(rivals, None)
    own = next((target for target in targets if target.application_id == claimant.application_id), None)
    return first_rival is None or (own is not None and own.set_at < first_rival.set_at)


def _is_of(target: Target, party: Party) -> bool:
    is_same_organisation = target.organisation_id is not None and target.organisation_id == party.organisation_id
    return target.application_id == party.application_id or is_same_organisation


def txt_record(domain: str, application_id: str) -> tuple[str, str]:
    """Return the host and the value of the TXT record by which `domain` names its application."""
    return f"{TXT_LABEL}.{domain}", f"application={application_id}"


def lost_target(application_id: str) -> str:
    """Return the cname target of an application after another proved the one it had.

    The name never resolves (RFC 6761 §6.4).
    """
    return f"lost.{application_id}{_NEVER_RESOLVES}"


def is_lost_target(name: str) -> bool:
    """Return whether the cname target stands for one that was lost."""
    return name.endswith(_NEVER_RESOLVES)


def _canonical(host: str) -> str | None:
    """Return a host name in canonical form, or None for an address."""
    try:
        return parse_host_name(host)
    except InvalidName:
        return None
