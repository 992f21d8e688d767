"""Discovery: whether the provider of a zone has Domain Connect, and supports our templates. Asks the network.

Rules
    the ``_domainconnect`` record is the zone's own servers' answer; where it is a CNAME, the resolver follows it
    each URL comes from outside: its addresses are checked where they are dialled, no redirection is followed, and an
        answer has a bound in bytes; all of it ends within `_LONGEST_SECONDS`
    no answer, an odd one or a late one closes the way, and never fails the look at the zone
    a domain check takes answers of the last minutes (`RecentAnswers`)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from common.addresses import AddressPolicy
from common.connect.domain_connect.provider_settings import (
    InvalidSettings,
    IsAllowed,
    ProviderSettings,
    parse_settings,
    settings_url,
    template_url,
)
from common.connect.domain_connect.recent import RecentAnswers
from common.dns import Outcome, Pass, Resolver
from common.pinned import find_addresses, pinned_session

_LONGEST_SECONDS: Final = 5.0
_SHARE_OF_ONE: Final = 0.8  # of the time, for one request: the time-out is then that of this host
_MOST_BYTES: Final = 64 * 1024
_QUESTIONS: Final = 8
_HEADERS: Final = {"Accept": "application/json", "User-Agent": "frontage"}


@dataclass(frozen=True, slots=True)
class Closed:
    """The reason why Domain Connect is not open to a domain.

    `provider`: the provider's name, once it has stated one.
    """

    code: str
    words: str
    provider: str | None = None


@dataclass(frozen=True, slots=True)
class Discovered:
    """The settings of a provider that has Domain Connect.

    `services`: those of our templates that were asked about and that the provider supports.
    """

    settings: ProviderSettings
    services: frozenset[str]


@dataclass(frozen=True, slots=True)
class Discovery:
    """Asks providers for Domain Connect. A process makes one.

    `provider_id` is this installation's, as a service provider.
    """

    resolver: Resolver
    policy: AddressPolicy
    is_allowed: IsAllowed
    provider_id: str
    longest_seconds: float = _LONGEST_SECONDS
    recent: RecentAnswers | None = None

    async def discover(self, questions: Pass, apex: str, services: Sequence[str]) -> Discovered | Closed | None:
        """Find out whether a zone's provider has Domain Connect, and which of the templates `services` it supports.

        None: the zone has no ``_domainconnect`` record.
        """
        try:
            async with asyncio.timeout(self.longest_seconds):
                return await self._discover(questions, apex, services)
        except InvalidSettings as error:
            return Closed("settings_invalid", f"The provider's Domain Connect settings cannot be used: {error}.")
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return Closed("provider_unreachable", "The provider's Domain Connect service did not answer.")

    async def _discover(self, questions: Pass, apex: str, services: Sequence[str]) -> Discovered | Closed | None:
        record = await _find_record(questions, apex)
        if record is None:
            return None
        status, body = await self._get(settings_url(record, apex, self.is_allowed))
        if status == 404:
            return Closed("zone_not_found", "The provider's Domain Connect service does not have the domain.")
        if status // 100 != 2:
            return Closed("provider_unreachable", "The provider's Domain Connect service is out of order.")
        settings = parse_settings(body, apex, self.is_allowed)
        if settings.sync_url is None:
            return Closed("no_consent_page", f"{settings.name} has no consent page for the domain.", settings.name)
        supported = await asyncio.gather(*(self._supports(settings, each) for each in services))
        return Discovered(settings, frozenset(each for each, yes in zip(services, supported, strict=True) if yes))

    async def _supports(self, settings: ProviderSettings, service: str) -> bool:
        status, _ = await self._get(template_url(settings, self.provider_id, service))
        return status // 100 == 2

    async def _get(self, url: str) -> tuple[int, bytes]:
        """Return the status and body of a URL, perhaps of the last minutes.

        Raises: aiohttp.ClientError, OSError, TimeoutError, `InvalidSettings`.
        """
        if self.recent is None:
            return await self._get_now(url)
        authority, now = urlsplit(url).netloc, asyncio.get_running_loop().time()
        if (kept := self.recent.find(url, now)) is not None:
            return kept
        if self.recent.is_silent(authority, now):
            raise TimeoutError
        try:
            status, body = await self._get_now(url)
        except (aiohttp.ClientError, OSError, TimeoutError):
            self.recent.note_silence(authority, now)
            raise
        self.recent.keep(url, status, body, now)
        return status, body

    async def _get_now(self, url: str) -> tuple[int, bytes]:
        """Ask for a URL; raises what `_get` raises."""
        addresses = await find_addresses(self.resolver, urlsplit(url).hostname or "")
        async with (
            asyncio.timeout(self.longest_seconds * _SHARE_OF_ONE),
            pinned_session(self.policy, addresses, longest_seconds=self.longest_seconds) as session,
            session.get(url, headers=_HEADERS, allow_redirects=False) as response,
        ):
            body = b""
            while len(body) <= _MOST_BYTES and (more := await response.content.read(_MOST_BYTES)):
                body += more
            if len(body) > _MOST_BYTES:
                raise InvalidSettings("the answer is too long")
            return response.status, body


async def _find_record(questions: Pass, apex: str) -> str | None:
    """Find the text of the zone's ``_domainconnect`` record.

    Raises: `InvalidSettings`, TimeoutError where no server answers.
    """
    name = f"_domainconnect.{apex}"
    zone = questions.zone_questions(_QUESTIONS, apex)
    answer = await zone.ask(name, "TXT")
    if answer.outcome is Outcome.NO_DATA and (await zone.ask(name, "CNAME")).outcome is Outcome.RECORDS:
        answer = await questions.ask(name, "TXT")
    if not answer.outcome.is_known:
        raise TimeoutError
    if len(answer.values) > 1:
        raise InvalidSettings("there are several _domainconnect records")
    return answer.values[0] if answer.values else None
