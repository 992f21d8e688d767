"""Do by hand what concerns a name or an application, each with its entry in the audit log.

Renew, revoke, check again, block, suspend, release, transfer, and let alarms out. The functions are one use case each,
in the transaction that the caller opens; who may do it is the caller's to decide. `OperatorOperations` does them with
an operator's rights, on any name, for the command line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from api.errors import (
    DOMAIN_NOT_VALID,
    EDGE_RUNS,
    NO_SUCH_EDGE,
    NOT_BLOCKED,
    NOT_ENROLLED,
    NOT_RENEWABLE,
    NOT_TRANSFERABLE,
    Refused,
    invalid_parameter,
)
from api.rights import Rights
from common import monitored_changes
from common.accounts import Permission
from common.db import audit, certificates, checks, domains, edge_nodes, locks, orders, ownership, policies, revocations
from common.db.applications import Application
from common.db.domains import Product
from common.db.monitored_domains import MonitoredKey
from common.db.policies import Policy, Scope
from common.db.pool import Database
from common.db.session import Connection
from common.domain_settings import DomainSettings
from common.enrolment import changes
from common.enrolment.ownership import OwnershipClaim, OwnershipEvidence, OwnershipVerdict, OwnNames, judge_claim
from common.enrolment.transfer import NoOrigin, NotTransferable
from common.enrolment.transfer import transfer as move
from common.names import DomainName

_RECHECKED_AT_ONCE = 50
_SHORTEST_NODE_ID = 4
_ACTIONS = {"domain": ("domain.block", "domain.unblock"), "application": ("application.suspend", "application.resume")}


# Use cases within a transaction --------------------------------------------------------------------------------


async def renew(connection: Connection, domain: str, application_id: str, *, most_a_day: int | None = None) -> None:
    """Have the domain's certificate renewed now. `most_a_day`: None for an operator, whose renewals do not count.

    Raises: `orders.NotRenewable`.
    """
    if await audit.find_earlier(connection, "certificate.renew", domain) is not None:
        return
    if await orders.request_renewal(connection, domain, application_id, most_a_day=most_a_day):
        await audit.record(connection, "certificate.renew", domain, application_id=application_id)


async def revoke(
    connection: Connection, domain: str, application_id: str, reason: int, *, at_once: bool = False
) -> bool:
    """Revoke the application's certificate of the domain (RFC 5280 §5.3.1), and return whether there was one.

    In place of one that serves, another is ordered.
    """
    if not await orders.request_replacement(connection, domain, application_id, reason, at_once=at_once):
        return False
    after = {"reason": reason}
    await audit.record(connection, "certificate.revoke", domain, application_id=application_id, after=after)
    return True


async def recheck(
    connection: Connection, domain: str, application_id: str | None = None, *, pause_seconds: float = 0.0
) -> None:
    """Have a monitor check the domain's DNS again at once, whichever application has it unless one is given.

    Raises: `Refused`.
    """
    holder = await orders.request_recheck(connection, domain, application_id, pause_seconds=pause_seconds)
    if holder is None:
        raise Refused(NOT_ENROLLED, hint=f"{domain} is not enrolled: there is nothing to check")
    await audit.record(connection, "domain.recheck", domain, application_id=holder)


def read_reason(text: str) -> str:
    """Return the reason that visitors read. Raises: `Refused`."""
    reason = policies.read_reason(text)
    if reason is None:
        hint = f"the reason: expected 1 to {policies.LONGEST_REASON} printable characters, which visitors read"
        raise Refused(invalid_parameter("reason"), hint=hint)
    return reason


async def set_policy(connection: Connection, scope: Scope, subject: str, reason: str, *, is_legal: bool) -> int:
    """Have every edge answer all requests of the name or the application with the reason. Return the status."""
    status = policies.LEGAL if is_legal else policies.FORBIDDEN
    before = await policies.put(connection, scope, subject, status, reason)
    was, after = _values(before), {"status": status, "reason": reason}
    if was != after:
        holder = await _log_of(connection, scope, subject)
        action, _ = _ACTIONS[scope]
        await audit.record(connection, action, subject, application_id=holder, before=was, after=after)
    return status


async def end_policy(connection: Connection, scope: Scope, subject: str) -> bool:
    """Have the edges forward requests again. Return whether there was a policy."""
    before = await policies.remove(connection, scope, subject)
    if before is None:
        return False
    holder = await _log_of(connection, scope, subject)
    _, action = _ACTIONS[scope]
    await audit.record(connection, action, subject, application_id=holder, before=_values(before))
    return True


async def _log_of(connection: Connection, scope: Scope, subject: str) -> str | None:
    """Return the application in whose log a policy stands, too: the one that has the domain."""
    if scope == "application":
        return subject
    held = await domains.find(connection, subject)
    return held[0].application_id if held else None


def _values(policy: Policy | None) -> dict[str, object] | None:
    return None if policy is None else {"status": policy.status, "reason": policy.reason}


# By an operator, whichever application it is about --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperatorOperations:
    """Operations on any name and application. Each call takes the caller's rights, which must be an operator's."""

    database: Database

    async def renew(self, rights: Rights, name: DomainName) -> None:
        """Have the certificate of the name renewed now. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        try:
            async with self.database.transaction() as connection:
                await renew(connection, name.text, await _holder(connection, name))
        except orders.NotRenewable as error:
            raise Refused(NOT_RENEWABLE, hint=str(error)) from error

    async def holder(self, rights: Rights, name: DomainName) -> str:
        """Return the id of the application that has the name. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.connection() as connection:
            return await _holder(connection, name)

    async def revoke(self, rights: Rights, name: DomainName, reason: int, *, at_once: bool) -> None:
        """Revoke the certificate of the name, served or kept. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            owner = await _holder(connection, name, released=True)
            is_requested = await revoke(connection, name.text, owner, reason, at_once=at_once)
            if not is_requested and not (at_once and await revocations.make_due(connection, name.text)):
                hint = f"{name} has no valid certificate that is not being revoked already"
                raise Refused(NOT_RENEWABLE, hint=hint)

    async def recheck(self, rights: Rights, name: DomainName) -> None:
        """Have a monitor check the DNS of the name again at once. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            await recheck(connection, name.text)

    async def recheck_all(self, rights: Rights, application: Application) -> int:
        """Have the names of an application whose DNS led elsewhere checked again. Return how many.

        Some at a time, each time in a short transaction.

        Raises: `Refused`.
        """
        rights.require_operator(Permission.OWN)
        after, count = "", 0
        while True:
            async with self.database.transaction() as connection:
                names = await domains.list_names(
                    connection, after=after, most=_RECHECKED_AT_ONCE, application_id=application.id
                )
                if names:
                    await locks.hold(connection, "domain", *names)
                    count += await orders.request_rechecks(connection, names, application.id)
            if len(names) < _RECHECKED_AT_ONCE:
                return count
            after = names[-1]

    async def enrol_api(self, rights: Rights, application: Application, name: DomainName, url: str) -> None:
        """Secure the domain of the API itself, in front of `url`, for an application of the operator's.

        Raises: `Refused`.
        """
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            await certificates.lock_domain(connection, name.text)
            standing = await ownership.find_standing(connection, name, application.id)
            own_names = OwnNames(frozenset())  # this one is ours, and enrolled for that
            verdict = judge_claim(name, application.id, standing, OwnershipEvidence(OwnershipClaim.OPERATOR), own_names)
            if verdict is not OwnershipVerdict.ENROL:
                raise Refused(DOMAIN_NOT_VALID, hint=_why_not_api(name, verdict, standing.holder))
            try:
                await changes.enrol(
                    connection, name.text, "secure", application.id, DomainSettings(url), OwnershipClaim.OPERATOR
                )
            except domains.EnrolledTooOften as error:
                hint = (
                    f"{name} was enrolled {domains.MOST_AGAIN} times in 24 hours: try again when 24 hours have passed"
                )
                raise Refused(DOMAIN_NOT_VALID, hint=hint) from error

    async def remove(
        self, rights: Rights, application_id: str, name: DomainName, product: Product | Literal["monitor"]
    ) -> None:
        """Take the name out of the product; it stays in the others.

        Raises: `Refused`, also where the application does not have the name there.
        """
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            if product == "monitor":
                key = MonitoredKey(application_id, name.registrable, name.subdomain)
                had = await monitored_changes.remove(connection, key) == "removed"
            else:
                had = await changes.remove(connection, name.text, product, application_id)
        if not had:
            what = f"application {application_id} has no {name} in {product}"
            raise Refused(NOT_ENROLLED, hint=f"{what}: `frontage domain show {name}` prints who has it")

    async def release(self, rights: Rights, name: DomainName) -> str | None:
        """Free the name, and return the holder so far.

        It is served no more, and no application is remembered as its holder.

        Raises: `Refused`.
        """
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            await certificates.lock_domain(connection, name.text)
            holder = (await ownership.find_standing(connection, name, "")).holder
            if holder is not None:
                await changes.revoke_ownership(connection, name.text, holder, "released")
            if not await ownership.forget(connection, name.text) and holder is None:
                raise Refused(NOT_ENROLLED, hint=f"no application holds {name}, or has held it lately")
            return holder

    async def block(self, rights: Rights, name: DomainName, reason: str, *, is_legal: bool) -> int:
        """Block the name, enrolled or not. Return the status that every request is answered with. Raises: `Refused`."""
        rights.require_operator(Permission.OWN)
        text = read_reason(reason)
        async with self.database.transaction() as connection:
            await certificates.lock_domain(connection, name.text)
            return await set_policy(connection, "domain", name.text, text, is_legal=is_legal)

    async def unblock(self, rights: Rights, name: DomainName) -> None:
        """End the block of the name. Raises: `Refused`, also where it is not blocked."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            if not await end_policy(connection, "domain", name.text):
                raise Refused(NOT_BLOCKED, hint=f"{name} is not blocked")

    async def suspend(self, rights: Rights, application: Application, reason: str, *, is_legal: bool) -> int:
        """Have every request of the application's domains answered with the reason. Return the status.

        Raises: `Refused`.
        """
        rights.require_operator(Permission.OWN)
        text = read_reason(reason)
        async with self.database.transaction() as connection:
            return await set_policy(connection, "application", application.id, text, is_legal=is_legal)

    async def resume(self, rights: Rights, application: Application) -> None:
        """End the suspension of the application. Raises: `Refused`, also where it is not suspended."""
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            if not await end_policy(connection, "application", application.id):
                raise Refused(NOT_BLOCKED, hint=f"application {application.id} is not suspended")

    async def transfer(self, rights: Rights, name: DomainName, target: Application, url: str | None) -> str:
        """Give the name to the application `target`, whatever the DNS proves. Return the holder so far.

        Raises: `Refused`.
        """
        rights.require_operator(Permission.OWN)
        try:
            async with self.database.transaction() as connection:
                return await move(connection, name, target, url)
        except NoOrigin as error:
            raise Refused(NOT_TRANSFERABLE, code="no_origin", hint=str(error)) from error
        except NotTransferable as error:
            raise Refused(NOT_TRANSFERABLE, hint=str(error)) from error

    async def release_alarms(self, rights: Rights, *, for_seconds: float) -> int:
        """Check domains whose alarms are held once more, and send those that are confirmed. Return how many domains.

        Raises: `Refused`.
        """
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            released = await checks.release_alarms(connection, for_seconds=for_seconds)
            await audit.record(connection, "alarms.release", "alarms", after={"domains": released})
            return released

    async def forget_edge(self, rights: Rights, start: str) -> str:
        """Forget the edge whose id begins so, and which was removed without a stop. Return its id.

        Raises: `Refused`.
        """
        rights.require_operator(Permission.OWN)
        async with self.database.transaction() as connection:
            found = await edge_nodes.find(connection, start) if len(start) >= _SHORTEST_NODE_ID else []
            if len(found) != 1:
                seen = f"{len(found)} edges have an id" if found else "no edge of the last day has an id"
                hint = f"{seen} that begins with {start}: `frontage status` lists the edges"
                raise Refused(NO_SUCH_EDGE, hint=hint)
            lost = found[0][0]
            if not await edge_nodes.forget(connection, lost.node_id):
                hint = f"edge {lost.label} on {lost.host} runs: stop it first, and it signs off by itself"
                raise Refused(EDGE_RUNS, hint=hint)
            before = {"host": lost.host, "nodeId": lost.node_id}
            await audit.record(connection, "edge.forget", lost.label, before=before)
            return lost.node_id


def _why_not_api(name: DomainName, verdict: OwnershipVerdict, holder: str | None) -> str:
    match verdict:
        case OwnershipVerdict.HELD:
            return f"{name} is held by application {holder}: `frontage domain release {name}` first"
        case OwnershipVerdict.BLOCKED:
            return f"{name} is blocked: `frontage domain unblock {name}` first"
        case _:
            return f"{name} is an application's cname target: give PUBLIC_URL another host"


def not_enrolled(name: DomainName) -> Refused:
    """Return the refusal of a name that no application has."""
    return Refused(NOT_ENROLLED, hint=f"{name} is not enrolled here: `frontage domain list` prints what is")


async def _holder(connection: Connection, name: DomainName, *, released: bool = False) -> str:
    """Return the application that has the name, or whose certificate for it is kept. Raises: `Refused`."""
    held = await domains.find(connection, name.text)
    if held:
        return held[0].application_id
    kept = await certificates.last_released(connection, name.text) if released else None
    if kept is None:
        raise not_enrolled(name)
    return kept
