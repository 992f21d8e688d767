"""Provider APIs: the changes of a plan, written by dns-lexicon with a token that a person has pasted.

dns-lexicon blocks, sets no time-outs and follows redirects. So each plan is written by a child process
(`api.connect.lexicon_worker`) that gets the token over a pipe and nothing else of ours, dials only what the
address policy allows, and is killed at its deadline. With it, the token is gone from memory. Children are bounded, in
all and for each application; a write beyond that waits its turn, a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from common.connect.root import ADDRESS_TYPES
from common.connect.values import NAME_TYPES, form_text
from common.connect.ways.problems import WayFailed
from common.connect.ways.provider_apis import PROVIDER_APIS, ProviderApi
from common.fair_queue import FairQueue, TooManyWaiting
from common.flows.plan import Change
from common.settings import Settings

_MOST_CHILDREN = 8
_MOST_OF_AN_APPLICATION = 3
_MOST_WAITING = 20  # of an application
_LONGEST_WAIT_SECONDS = 45.0
_LONGEST_SECONDS = 60.0
_INHERITED_VARIABLES: Final = ("PATH", "PYTHONPATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "LANG", "TMPDIR")
_TOO_MANY: Final = "Too many changes of this application are being written at once."
_UNREACHABLE: Final = "The provider did not answer in time."


class ProviderApis:
    """Writes plans through providers' APIs, each in a child process. A process makes one.

    Mutable state: the queue for all children, which applications share evenly; and of each application that has a
    write, its own queue and how many writes it has.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        longest_seconds: float = _LONGEST_SECONDS,
        longest_wait_seconds: float = _LONGEST_WAIT_SECONDS,
    ) -> None:
        self._policy = {
            "allowed": [str(each) for each in settings.allow_private_addresses],
            "denied": [str(each) for each in settings.deny_addresses],
            "listeners": [[listen.host, listen.port] for listen in settings.listeners],
        }
        self._service_servers = frozenset(map(str, settings.service_servers))
        self._longest_seconds = longest_seconds
        self._longest_wait_seconds = longest_wait_seconds
        self._room = FairQueue(_MOST_CHILDREN)
        self._queues: dict[str, FairQueue] = {}
        self._writes: Counter[str] = Counter()

    async def write(
        self, api_id: str, apex: str, changes: Sequence[Change], credentials: Mapping[str, str], *, tenant: str
    ) -> None:
        """Write the changes of a plan into the zone.

        Raises: `WayFailed`; some of the changes may be written then.
        """
        api = PROVIDER_APIS[api_id]
        job = {
            "api": api.id,
            "domain": apex,
            "credentials": _check_credentials(api, credentials),
            "changes": [
                _describe_change(api, change) | {"is_one_enough": self._is_one_enough(change, apex)}
                for change in changes
            ],
            "policy": self._policy,
            "seconds": self._longest_seconds,
        }
        async with self._slot(tenant):
            answer = await self._run(orjson.dumps(job))
        if answer is None:
            raise WayFailed("provider_unreachable", _UNREACHABLE)
        if "code" in answer:
            raise WayFailed(answer["code"], answer["words"], tuple(answer.get("fields", ())))

    def _is_one_enough(self, change: Change, apex: str) -> bool:
        """Return whether a provider may refuse some of the addresses: a root that has one of ours leads to us."""
        return change.name == apex and change.type in ADDRESS_TYPES and self._service_servers.issuperset(change.after)

    @contextlib.asynccontextmanager
    async def _slot(self, tenant: str) -> AsyncIterator[None]:
        """Wait for a turn among the application's and all children.

        Raises: `WayFailed` when the turn does not come in time.
        """
        fresh = FairQueue(_MOST_OF_AN_APPLICATION, most_waiting_per_tenant=_MOST_WAITING)
        own = self._queues.setdefault(tenant, fresh)
        self._writes[tenant] += 1
        try:
            async with contextlib.AsyncExitStack() as slots:
                try:
                    async with asyncio.timeout(self._longest_wait_seconds):
                        await slots.enter_async_context(own.slot(tenant))
                        await slots.enter_async_context(self._room.slot(tenant))
                except (TimeoutError, TooManyWaiting) as error:
                    raise WayFailed("rate_limited", _TOO_MANY) from error
                yield
        finally:
            self._writes[tenant] -= 1
            if not self._writes[tenant]:
                del self._writes[tenant], self._queues[tenant]

    async def _run(self, job: bytes) -> dict[str, Any] | None:
        """Run a child; return what it printed at its end, or None if it was killed or died."""
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "api.connect.lexicon_worker",
            str(os.getpid()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # a library's traceback may hold a token
            env={name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._longest_seconds):
                output, _ = await child.communicate(job)
        except TimeoutError:
            return None
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.kill()
                await child.wait()
        with contextlib.suppress(orjson.JSONDecodeError):
            answer: dict[str, Any] = orjson.loads(output)
            return answer
        return None


def _describe_change(api: ProviderApi, change: Change) -> dict[str, object]:
    """Return a change in the form that dns-lexicon takes."""

    def value(normal: str) -> list[str | None]:
        text, priority = form_text(change.type, normal)
        if api.has_final_dot and change.type in NAME_TYPES and not text.endswith("."):
            text += "."
        if priority is not None and api.has_priority_in_value:
            return [f"{priority} {text}", None]
        return [text, priority]

    return {
        "name": change.name,
        "type": change.type,
        "ttl": change.ttl,
        "remove": [value(each) for each in change.before if each not in change.after],
        "add": [value(each) for each in change.after if each not in change.before],
        "has_kept": not frozenset(change.before).isdisjoint(change.after),
    }


def _check_credentials(api: ProviderApi, credentials: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of this API and no others, which could reach options of dns-lexicon.

    Raises: `WayFailed`.
    """
    missing = [field for field in api.fields if field.is_required and not credentials.get(field.name, "").strip()]
    if missing:
        labels = " and ".join(field.label for field in missing)
        names = tuple(field.name for field in missing)
        raise WayFailed("credentials_missing", f"{labels}: needed for {api.name}.", names)
    given = {field.name: credentials[field.name].strip() for field in api.fields if credentials.get(field.name)}
    if api.endpoint_field is not None and not _is_web_address(given[api.endpoint_field]):
        raise WayFailed("address_refused", "The API's address begins with https:// or http://.", (api.endpoint_field,))
    if "/" in given.get("pdns_server_id", ""):
        raise WayFailed("credentials_missing", "A server id has no slash.", ("pdns_server_id",))
    return given


def _is_web_address(text: str) -> bool:
    """Return whether a text is an HTTP URL, and not a path of a socket, which dns-lexicon would open."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not os.path.exists(text)
    except ValueError:
        return False
