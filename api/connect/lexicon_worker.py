"""``python -m api.connect.lexicon_worker``: writes one plan through dns-lexicon, and ends.

A child of `api.connect.provider_api`: reads one job from standard input, writes the outcome to standard output
as one JSON object. The whole process has one purpose, so its limits are set for the process: a deadline, a time-out for
every socket, and an address policy where each socket connects.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from ipaddress import ip_address, ip_network
from typing import Any, Final

import orjson
import requests
from lexicon.config import ConfigResolver, DictConfigSource
from lexicon.exceptions import AuthenticationError

from common.addresses import AddressPolicy
from common.connect.values import NAME_TYPES, zone_file_text
from common.errors import AddressRefused
from common.records import normal_value, text_of

_SOCKET_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1
_REFUSED: Final = "provider_refused"
_AWS_FIELDS: Final[Mapping[str, str]] = {
    "InvalidClientTokenId": "auth_access_key",
    "SignatureDoesNotMatch": "auth_access_secret",
}
"""The credential that is wrong, by the code of AWS' error."""
_NO_ZONE: Final = ("no domain found", "domain not found", "does not exist", "zone not found", "unable to find")


def main() -> None:
    """Write the plan on standard input, and print the outcome."""
    _end_with_parent(int(sys.argv[1]))
    job = orjson.loads(sys.stdin.buffer.read())
    signal.setitimer(signal.ITIMER_REAL, job["seconds"])  # SIGALRM ends the process
    logging.disable(logging.CRITICAL)
    _limit_sockets(_parse_policy(job["policy"]))
    sys.stdout.buffer.write(orjson.dumps(_write_plan(job)))


def _end_with_parent(parent: int) -> None:
    """End with the parent process, so that no orphan writes into a zone beside the parent's successor."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


def _parse_policy(given: Mapping[str, Any]) -> AddressPolicy:
    return AddressPolicy(
        map(ip_network, given["allowed"]),
        [(host, port) for host, port in given["listeners"]],
        denied=map(ip_network, given["denied"]),
    )


def _limit_sockets(policy: AddressPolicy) -> None:
    """Apply the policy to every connection of this process, those after a redirect too.

    The address that is checked is the address that is dialled.
    """
    connect: Callable[..., None] = socket.socket.connect

    def checked(self: socket.socket, address: Any) -> None:
        if self.family not in (socket.AF_INET, socket.AF_INET6):
            raise OSError("only the network is dialled")
        if self.type & socket.SOCK_STREAM:
            try:
                policy.check(ip_address(str(address[0]).partition("%")[0]), int(address[1]))
            except AddressRefused as error:
                raise _NotAllowed(str(error)) from error
        connect(self, address)

    socket.socket.connect = checked  # type: ignore[method-assign, assignment]
    socket.setdefaulttimeout(_SOCKET_SECONDS)


class _NotAllowed(OSError):
    """The address policy refuses an address."""


def _write_plan(job: Mapping[str, Any]) -> dict[str, Any]:
    """Write the changes of a job; return the problem if there was one, else nothing."""
    stage = "sign in"
    provider: Any = None
    try:
        options: dict[str, Any] = {}
        provider = _make_provider(job, options)
        provider.authenticate()
        stage = "write"
        for change in job["changes"]:
            _write(provider, options, change)
    except Exception as error:  # noqa: BLE001 - the process' root: what a library raises may hold a token
        return _blame(job, provider, error, _problem(error, stage))
    return {}


def _blame(job: Mapping[str, Any], provider: Any, error: Exception, problem: dict[str, str]) -> dict[str, Any]:
    """Return the problem with the names of the credentials that are wrong, where the provider tells."""
    match job["api"], problem["code"]:
        case "route53", "wrong_token" if field := _AWS_FIELDS.get(_aws_code(error)):
            return problem | {"fields": [field]}
        case "ovh", _ if provider is not None and provider.endpoint_api is None:
            return _wrong_value("The entry point is none of OVHcloud's.", "auth_entrypoint")
        case "powerdns", "zone_not_found" if "pdns_server_id" in job["credentials"] and not _has_server(provider):
            return _wrong_value("There is no server of this id: PowerDNS' own is localhost.", "pdns_server_id")
    return problem


def _wrong_value(words: str, field: str) -> dict[str, Any]:
    return {"code": "credentials_missing", "words": words, "fields": [field]}


def _aws_code(error: Exception) -> str:
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code")) if isinstance(response, dict) else ""


def _has_server(provider: Any) -> bool:
    """Return whether PowerDNS' API has a server of the id that was given: it answers 404 for a zone just as well."""
    try:
        provider._get("")
    except Exception as error:  # noqa: BLE001 - what a library raises, as in `_write_plan`
        return _status_of(error) != 404
    return True


def _make_provider(job: Mapping[str, Any], options: dict[str, Any]) -> Any:
    """Make dns-lexicon's object for the provider.

    Its client is not used, because that fetches a list of suffixes from the network.
    """
    name = job["api"]
    options.update({"domain": job["domain"], "provider_name": name, "ttl": 300, name: dict(job["credentials"])})
    config = ConfigResolver().with_config_source(  # type: ignore[no-untyped-call]
        DictConfigSource(options)
    )
    provider = import_module(f"lexicon._private.providers.{name}").Provider(config)
    if name == "powerdns":
        # Its own takes every CNAME's target for a name in the zone, and knows no long texts (seen in 3.25).
        provider._clean_content = _powerdns_content
        provider._unclean_content = lambda _, content: content
        provider._parse_identifier = _powerdns_record
    return provider


def _powerdns_record(identifier: str) -> tuple[str, str, str]:
    """Split `type/name=content` into type, name and content.

    The provider's own function ends the content at a slash (seen in 3.25): the old SPF record then stays beside the
    new one.
    """
    kind, _, rest = identifier.partition("/")
    name, _, content = rest.partition("=")
    return kind, name, content


def _powerdns_content(kind: str, content: str) -> str:
    """Spell a record's content as in a zone file."""
    if kind == "TXT":
        return content if content.startswith('"') else zone_file_text("TXT", text_of(content.encode()))
    return f"{content.rstrip('.')}." if kind in NAME_TYPES else content


def _write(provider: Any, options: dict[str, Any], change: Mapping[str, Any]) -> None:
    """Write the change of one set of records.

    A single value is updated in place where the API can; else removals come first, since a CNAME or a second SPF
    record must not stand beside what it replaces.
    """
    kind, name = change["type"], change["name"]
    options["ttl"] = change["ttl"]
    there = provider.list_records(kind, name, None) if change["remove"] else []
    old = [each for each in there if any(_is_same(kind, each, value) for value in change["remove"])]
    if len(old) == len(change["add"]) == 1 and old[0].get("id"):
        content = _content(options, change["add"][0])
        provider.update_record(old[0]["id"], kind, name, content)
        return
    for record in old:
        if record.get("id"):
            provider.delete_record(record["id"])
        else:
            provider.delete_record(None, kind, name, record["content"])
    is_enough = change["is_one_enough"] and change["has_kept"]
    for value in change["add"]:
        try:
            provider.create_record(kind, name, _content(options, value))
        except Exception as error:
            if not is_enough or _problem(error, "write")["code"] != _REFUSED:
                raise
            continue  # the provider takes no more of them, and what is there leads to us
        is_enough = change["is_one_enough"]


def _content(options: dict[str, Any], value: list[str | None]) -> str:
    text, priority = value
    options["priority"] = priority and int(priority)
    return text or ""


def _is_same(kind: str, record: Mapping[str, Any], value: list[str | None]) -> bool:
    text = value[0] or ""
    content = str(record["content"])
    if kind == "MX" and " " not in text:
        content = content.rsplit(maxsplit=1)[-1]
    return normal_value(kind, content) == normal_value(kind, text)


def _problem(error: Exception, stage: str) -> dict[str, str]:
    """Return an error code and a message of ours; a text of the provider or the library is never passed on."""
    code, words = _REFUSED, "The provider did not take the change."
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, _NotAllowed):
            return {"code": "address_refused", "words": "The API's address may not be dialled."}
        cause = cause.__cause__ or cause.__context__
    status = _status_of(error)
    if status is not None:
        code, words = _problem_of_status(status, stage)
    elif isinstance(error, AuthenticationError) or (stage == "sign in" and type(error) is Exception):
        code, words = "wrong_token", "The provider does not accept these credentials."
        if any(each in str(error).lower() for each in _NO_ZONE):
            code, words = "zone_not_found", "The account of these credentials does not have the domain."
    elif isinstance(error, requests.RequestException | OSError):
        code, words = "provider_unreachable", "The provider did not answer."
    return {"code": code, "words": words}


def _status_of(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # boto3
        with suppress(KeyError):
            return int(response["ResponseMetadata"]["HTTPStatusCode"])
        return None
    status = getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


def _problem_of_status(status: int, stage: str) -> tuple[str, str]:
    if status == 429:
        return "rate_limited", "The provider takes no more requests for now."
    if status >= 500:
        return "provider_unreachable", "The provider is out of order."
    if status == 401 or (stage == "sign in" and status in (400, 403)):
        return "wrong_token", "The provider does not accept these credentials."
    if status == 403:
        return "not_allowed", "These credentials may not change this domain's records."
    if status == 404:
        return "zone_not_found", "The account of these credentials does not have the domain."
    return _REFUSED, "The provider did not take the change."


if __name__ == "__main__":
    main()
