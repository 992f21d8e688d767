"""What a setting may hold: each kind's type, and the function that reads its text.

A reader gets a text that is not empty and returns its value, or raises a ValueError that says what was expected. The
kinds at the end join both; `common.settings` says which variable is of which kind.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from common.host_ports import HostPort, parse_host_port
from common.ip_addresses import IPAddress, Network, parse_address

_DAY_SECONDS = 86_400
_LONGEST_DELAY_SECONDS = 600


class ExternalAccount(NamedTuple):
    """The credentials with which a CA binds an ACME account to its customer (RFC 8555 §7.3.4)."""

    authority: str  # the directory's host, with its port where the address has one
    key_id: str
    mac_key: str  # base64url

    def __repr__(self) -> str:
        return f"<ExternalAccount {self.key_id} at {self.authority}>"


class DnsUpdateTarget(NamedTuple):
    """A zone's primary name server, and the TSIG key that it lets write (RFC 2136, RFC 8945; hmac-sha256)."""

    server: HostPort
    key_name: str
    secret: str  # base64

    def __repr__(self) -> str:
        return f"<DnsUpdateTarget {self.server} by {self.key_name}>"


class OidcGrant(NamedTuple):
    """What users get for whom the OpenID provider's claim has this value: a role in an organisation, or an operator's.

    `organisation`: its id or name; None for an operator's rights.
    """

    value: str
    organisation: str | None
    role: Literal["owner", "developer", "viewer"] | None

    def __str__(self) -> str:
        return f"{self.value}={'operator' if self.organisation is None else f'{self.organisation}/{self.role}'}"


# Readers -------------------------------------------------------------------------------------------------------------

_T = TypeVar("_T")
Reader = Callable[[str], _T]

_EXTERNAL_ACCOUNT = re.compile(r"([^\s=]+)=([^\s:]+):([A-Za-z0-9_-]{16,})=*")
_SWITCH = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


def _switch(text: str) -> bool:
    if (value := _SWITCH.get(text.strip().lower())) is None:
        raise ValueError("expected on or off")
    return value


def _one_of(*words: str) -> Reader[Any]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"expected {', '.join(words[:-1])} or {words[-1]}")
        return text

    return read


def _whole_number(least: int, most: int) -> Reader[int]:
    def read(text: str) -> int:
        if not re.fullmatch("[0-9]{1,20}", text.strip()) or not least <= int(text) <= most:
            raise ValueError(f"expected a whole number from {least} to {most}")
        return int(text)

    return read


def _seconds(text: str) -> float:
    if not 0 < (seconds := _number(text)) <= _DAY_SECONDS:
        raise ValueError(f"expected seconds, more than 0 and at most {_DAY_SECONDS}")
    return seconds


def _delay(text: str) -> float:
    if not 0 <= (seconds := _number(text)) <= _LONGEST_DELAY_SECONDS:
        raise ValueError(f"expected seconds, from 0 to {_LONGEST_DELAY_SECONDS}")
    return seconds


def _share(text: str) -> float:
    if not 0 <= (share := _number(text)) <= 1:
        raise ValueError("expected a number from 0 to 1")
    return share


def _number(text: str) -> float:
    """Read a number; return NaN for other text, because no range holds it."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _or_off(read: Reader[_T]) -> Reader[_T | None]:
    return lambda text: None if text == "off" else read(text)


def _each(read: Reader[_T]) -> Reader[tuple[_T, ...]]:
    """Return a reader of values between commas."""
    return lambda text: tuple(read(part.strip()) for part in text.split(",") if part.strip())


def _name_server(text: str) -> HostPort:
    server = parse_host_port(text, 53)
    ipaddress.ip_address(server.host)  # a name would need a name server to be found
    return server


def _web_address(text: str) -> str:
    if not (re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", text) and _has_host(text)):
        raise ValueError("expected http:// or https:// and a host")
    return text


def _has_host(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, or a port beyond 65535
        return False


def _host_name(text: str) -> str:
    is_name = re.fullmatch(r"[\w-]{1,63}(\.[\w-]{1,63})*\.?", text) and len(text) <= 254
    if not is_name or parse_address(text) is not None:
        raise ValueError("expected a host name")
    return text


def _external_account(text: str) -> ExternalAccount:
    if (found := _EXTERNAL_ACCOUNT.fullmatch(text)) is None:
        raise ValueError(
            "expected host=KEY-ID:MAC-KEY, and so on after commas; the MAC key as the CA prints it, in base64url, of 16"
            " characters or more"
        )
    return ExternalAccount(*found.groups())


def _dns_update_target(text: str) -> DnsUpdateTarget:
    server, _, key = text.partition("=")
    name, _, secret = key.partition(":")
    is_secret = re.fullmatch(r"(?=.{16,})([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", secret)
    if not (is_secret and re.fullmatch(r"[\w.-]+", name)):
        raise ValueError("expected ADDRESS:PORT=KEY-NAME:SECRET, the secret of the TSIG key (hmac-sha256) in base64")
    return DnsUpdateTarget(_name_server(server), name, secret)


def _oidc_grant(text: str) -> OidcGrant:
    value, _, what = text.rpartition("=")
    organisation, _, role = what.rpartition("/")
    if value and what == "operator":
        return OidcGrant(value, None, None)
    if value and organisation:
        match role:
            case "owner" | "developer" | "viewer":
                return OidcGrant(value, organisation, role)
    raise ValueError(
        "expected VALUE=ORGANISATION/ROLE, where the role is owner, developer or viewer, or VALUE=operator; and so on"
        " after commas"
    )


def _oidc_issuer(text: str) -> str:
    address = _web_address(text)
    host = urlsplit(address).hostname or ""
    is_here = host == "localhost" or ((ip := parse_address(host)) is not None and ip.is_loopback)
    if not (address.startswith("https://") or is_here):
        raise ValueError("expected the issuer's https:// address; http:// is for a provider on this machine alone")
    return address


def _directory(text: str) -> str:
    if not re.fullmatch(r"https://[^\s/?#@]+(/\S*)?", text) or not _has_host(text):
        raise ValueError("expected https:// addresses of ACME directories")
    return text


def _directories(text: str) -> tuple[str, ...]:
    directories = _each(_directory)(text)
    if len(set(directories)) < len(directories):
        raise ValueError("it names a directory twice")
    return directories


def _profile_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,63}", text):
        raise ValueError("expected a profile's name, such as classic, tlsserver or shortlived")
    return text


def _provider_id(text: str) -> str:
    if not re.fullmatch(r"(?=.{4,63}$)([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]", text):
        raise ValueError("expected a domain name of yours in lower case, of at most 63 characters")
    return text


def _access_log(text: str) -> str:
    if text not in ("off", "-") and not (text.startswith("/") and len(text) > 1):
        raise ValueError("expected off, - or an absolute path")
    return text


# Kinds ---------------------------------------------------------------------------------------------------------------

Text = Annotated[str, str]
Texts = Annotated[tuple[str, ...], _each(str)]
File = Annotated[Path, Path]
Switch = Annotated[bool, _switch]
Count = Annotated[int, _whole_number(1, 2**53)]
Workers = Annotated[int, _whole_number(1, 256)]
Seconds = Annotated[float, _seconds]
SecondsOrOff = Annotated[float | None, _or_off(_seconds)]
Delay = Annotated[float, _delay]
Share = Annotated[float, _share]
Listen = Annotated[HostPort, parse_host_port]
ListenOrOff = Annotated[HostPort | None, _or_off(parse_host_port)]
HostName = Annotated[str, _host_name]
WebAddress = Annotated[str, _web_address]
WebAddressOrOff = Annotated[str | None, _or_off(_web_address)]
Networks = Annotated[tuple[Network, ...], _each(ipaddress.ip_network)]
Addresses = Annotated[tuple[IPAddress, ...], _each(ipaddress.ip_address)]
NameServers = Annotated[tuple[HostPort, ...], _each(_name_server)]
Directories = Annotated[tuple[str, ...], _directories]
ExternalAccounts = Annotated[tuple[ExternalAccount, ...], _each(_external_account)]
DnsUpdate = Annotated[DnsUpdateTarget, _dns_update_target]
OidcGrants = Annotated[tuple[OidcGrant, ...], _each(_oidc_grant)]
OidcIssuer = Annotated[str, _oidc_issuer]
ProviderId = Annotated[str, _provider_id]
ProfileName = Annotated[str, _profile_name]
AccessLog = Annotated[str, _access_log]
LogFormat = Annotated[Literal["json", "combined"], _one_of("json", "combined")]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], _one_of("debug", "info", "warning", "error")]
Issuer = Annotated[Literal["internal", "acme"], _one_of("internal", "acme")]
