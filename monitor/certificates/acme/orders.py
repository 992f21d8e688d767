"""One order at a CA, carried from wherever it stands to the chain.

What is done next follows from the order's status alone (RFC 8555 §7.1.6), so an order that comes back ``ready`` or
``valid`` at once, and one that a dead monitor left anywhere, go the same way as any other:

    pending      answer its challenges, then poll until it is no longer pending
    ready        finalize with the request, then poll until it is no longer processing
    processing   poll
    valid        download
    invalid      it failed; the authorization holds the reason

Polling begins after `_FIRST_POLL_SECONDS` and grows slower, or waits as long as the CA asks. Challenges are answered by
the edges: http-01 by the account's thumbprint alone, dns-01 by values that are published first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, TypeAlias, TypeVar

from acme import challenges, messages
from cryptography import x509
from josepy.errors import DeserializationError
from josepy.interfaces import JSONDeSerializable
from josepy.json_util import field

from monitor.certificates.acme.problems import AcmeProblem, failed_validation, failure
from monitor.certificates.acme.transport import CaResponse, Transport
from monitor.certificates.issuer import ChallengeKind, IssuanceFailed
from monitor.certificates.phases import Phases

_FIRST_POLL_SECONDS: Final = 0.02
_GROWTH: Final = 1.5
_LONGEST_POLL_SECONDS: Final = 2.0
_LONGEST_ASKED_SECONDS: Final = 30.0
_ORDER_SECONDS: Final = 120.0  # then the attempt ends; the next one carries the same order on
_CHAIN: Final = "application/pem-certificate-chain"

_R = TypeVar("_R", bound=JSONDeSerializable)
Publish: TypeAlias = Callable[[Collection[str]], Awaitable[None]]
"""Has TXT values answered where the domain's challenge is delegated to."""


class NewOrder(messages.NewOrder):
    """A newOrder request with the fields of a renewal (RFC 9773 §5) and of a profile (draft-aaron-acme-profiles §4)."""

    replaces: str | None = field("replaces", omitempty=True)
    profile: str | None = field("profile", omitempty=True)


class OrderCourse:
    """Carries one order to its end in one attempt. Created by the issuer for each attempt.

    `before_validation` returns once the edges can answer the CA's requests.
    """

    def __init__(
        self,
        transport: Transport,
        account_url: str,
        order_url: str,
        domain: str,
        phases: Phases,
        before_validation: Callable[[], Awaitable[None]],
    ) -> None:
        self._transport = transport
        self._account_url = account_url
        self._order_url = order_url
        self._domain = domain
        self._phases = phases
        self._before_validation = before_validation
        self._ends_at = asyncio.get_running_loop().time() + _ORDER_SECONDS

    async def fetch(self) -> messages.Order:
        """Fetch the order from the CA.

        Raises: `AcmeProblem` where the CA does not know the order, or it is another account's; `IssuanceFailed`.
        """
        return self.read(await self._fetch(self._order_url))

    async def finish(
        self,
        order: messages.Order,
        request: x509.CertificateSigningRequest,
        ways: Sequence[ChallengeKind],
        publish: Publish,
    ) -> str:
        """Carry the order on from its present status and return the certificate chain (PEM).

        The CA validates by the first of `ways` that it offers.

        Raises: `IssuanceFailed`; one of kind ``validation`` or ``caa`` means that the order is dead.
        """
        try:
            if order.status == messages.STATUS_PENDING:
                with self._phases.timed("challenge"):
                    await self._answer_challenges(order, ways, publish)
                with self._phases.timed("validation"):
                    order = await self._poll_while(messages.STATUS_PENDING)
            with self._phases.timed("finalize"):
                if order.status == messages.STATUS_READY:
                    order = await self._finalize(order, request)
                if order.status == messages.STATUS_PROCESSING:
                    order = await self._poll_while(messages.STATUS_PROCESSING)
            if order.status == messages.STATUS_INVALID:
                raise await self._explain_invalid(order)
            if order.status != messages.STATUS_VALID:
                raise self._transport.unreadable("order")
            with self._phases.timed("download"):
                return await self._download(order)
        except AcmeProblem as problem:
            raise failure(problem, self._transport.authority) from problem

    def read(self, answer: CaResponse) -> messages.Order:
        """Parse an order from a response.

        Raises: `IssuanceFailed`.
        """
        return self._read(messages.Order, answer)

    async def _answer_challenges(self, order: messages.Order, ways: Sequence[ChallengeKind], publish: Publish) -> None:
        """Ask the CA to validate each pending authorization that it does not validate already."""
        for url in order.authorizations or ():
            authorization = self._read(messages.Authorization, await self._fetch(url))
            if authorization.status != messages.STATUS_PENDING:
                continue
            if any(each.status != messages.STATUS_PENDING for each in authorization.challenges or ()):
                continue  # an earlier attempt responded
            challenge = self._choose(authorization, ways)
            if isinstance(challenge.chall, challenges.DNS01):
                await publish([challenge.chall.validation(self._transport.key)])
            await self._before_validation()
            await self._respond(challenge)

    async def _respond(self, challenge: messages.ChallengeBody) -> None:
        """Announce to the CA that the challenge can be validated."""
        try:
            response = challenge.chall.response_cls(key_authorization=None)  # RFC 8555 §8.3, §8.4: {}
            await self._transport.post(challenge.uri, response, account_url=self._account_url)
        except AcmeProblem as problem:
            # A challenge response that the CA already has is refused when it is repeated; the order shows the state.
            if problem.code != "malformed":
                raise

    def _choose(self, authorization: messages.Authorization, ways: Sequence[ChallengeKind]) -> messages.ChallengeBody:
        """Return the authorization's challenge of the first of these ways that it has.

        Raises: `IssuanceFailed`.
        """
        offered = {challenge.chall.typ: challenge for challenge in authorization.challenges or ()}
        for way in ways:
            if way in offered:
                return offered[way]
        wanted = " or ".join(ways)
        raise IssuanceFailed(f"{self._transport.authority} does not offer to validate {self._domain} by {wanted}")

    async def _finalize(self, order: messages.Order, request: x509.CertificateSigningRequest) -> messages.Order:
        """Send the signing request, and return the order as it then stands.

        Raises: `AcmeProblem`, `IssuanceFailed`.
        """
        body = messages.CertificateRequest(csr=request)
        while True:
            try:
                return self.read(await self._transport.post(order.finalize, body, account_url=self._account_url))
            except AcmeProblem as problem:
                if problem.code != "orderNotReady":
                    raise
            # Already finalized, and only the response was lost; or the CA's servers are not in step yet.
            order = await self._poll_while(messages.STATUS_PENDING)
            if order.status != messages.STATUS_READY:
                return order

    async def _poll_while(self, status: messages.Status) -> messages.Order:
        """Fetch the order, with growing pauses, until it has another status than this."""
        pause, loop = _FIRST_POLL_SECONDS, asyncio.get_running_loop()
        asked = 0.0
        while loop.time() < self._ends_at:
            await asyncio.sleep(min(asked, _LONGEST_ASKED_SECONDS) or pause)
            answer = await self._fetch(self._order_url)
            order = self.read(answer)
            if order.status != status:
                return order
            asked, pause = answer.retry_after_seconds, min(pause * _GROWTH, _LONGEST_POLL_SECONDS)
        raise IssuanceFailed(f"{self._transport.authority} takes its time over {self._domain}", kind="unavailable")

    async def _explain_invalid(self, order: messages.Order) -> IssuanceFailed:
        """Return a failure with the reason that the CA gives for the invalid order."""
        error = order.error
        for url in order.authorizations or ():
            authorization = self._read(messages.Authorization, await self._fetch(url))
            error = next((each.error for each in authorization.challenges or () if each.error), error)
        return failed_validation(self._domain, error, self._transport.authority)

    async def _download(self, order: messages.Order) -> str:
        """Download the certificate chain."""
        if order.certificate is None:
            raise self._transport.unreadable("order")
        answer = await self._fetch(order.certificate, accept=_CHAIN)
        try:
            return answer.body.decode("ascii")
        except UnicodeDecodeError as error:
            raise self._transport.unreadable("certificate") from error

    async def _fetch(self, url: str, accept: str = "application/json") -> CaResponse:
        """Fetch a resource of the account with POST-as-GET (RFC 8555 §6.3)."""
        return await self._transport.post(url, None, account_url=self._account_url, accept=accept)

    def _read(self, kind: type[_R], answer: CaResponse) -> _R:
        """Parse a message of that kind from a response.

        Raises: `IssuanceFailed`.
        """
        try:
            read: _R = kind.from_json(answer.json())
            return read
        except (ValueError, TypeError, AttributeError, DeserializationError) as error:
            raise self._transport.unreadable(kind.__name__.lower()) from error
