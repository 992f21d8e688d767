"""Reads an application's settings as people type them: one rule for each, for the command line and the dashboard.

Each function returns the value to store, or raises `InvalidSetting` in words for the person who typed it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from common.addresses import AddressPolicy
from common.db.error_pages import MAX_PAGE_BYTES
from common.enrolment.ownership import OwnNames, is_lost_target
from common.errors import AddressRefused, FrontageError, InvalidName
from common.metadata import MOST_FIELDS, InvalidMetadata, check_keys
from common.names import parse_domain, parse_host_name
from common.urls import MOST_ROOT_PATH_CHARACTERS, InvalidUrl, parse_application_url, parse_webhook_url

LONGEST_NAME = 100
MAX_BUFFERED_UPLOAD_BYTES = 1 << 40
MOST_ROOT_PATHS = 200
"""Edges compare each request's path with all of them."""
_SIZE = re.compile(r"([0-9]{1,13})([KMG]?)", re.IGNORECASE | re.ASCII)
SHORTEST_SERVICE_AUTH, LONGEST_SERVICE_AUTH = 16, 256
_SERVICE_AUTH = re.compile(r"[!-~]([ -~]*[!-~])?")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class InvalidSetting(FrontageError):
    """A value that is not stored; the text is the reason."""


def read_name(text: str) -> str:
    """Read the name that people call an application by, without blanks around it."""
    name = text.strip()
    if not name:
        raise InvalidSetting("expected some text")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise InvalidSetting(f"expected at most {LONGEST_NAME} printable characters")
    return name


def read_domain_name(text: str) -> str:
    """Read a domain name, as A-labels."""
    try:
        return parse_domain(text).text
    except InvalidName as error:
        raise InvalidSetting(str(error)) from error


def read_cname_target(text: str, own_names: OwnNames) -> str:
    """Read a partner's own name, to which its customers' domains lead.

    One of ours would make every domain that leads to us theirs; one that can have no CNAME record leads nowhere,
    and would only keep the domain itself from its owner (RFC 1034 §3.6.2).
    """
    name = read_domain_name(text)
    if parse_domain(name).is_root:
        raise InvalidSetting(f"{name} is a root, which can have no CNAME record: give a name beneath it")
    if is_lost_target(name):
        raise InvalidSetting(f"{name} never resolves: give a name of your own zone that leads to our target by CNAME")
    if name in own_names:
        raise InvalidSetting(f"{name} is our own name: give the partner's, which leads to our target by CNAME")
    return name


def read_upload_size(text: str) -> int:
    """Read a size in bytes from a number with or without K, M or G (powers of 1024)."""
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if not 0 < size <= MAX_BUFFERED_UPLOAD_BYTES:
        raise InvalidSetting("expected a size from 1 byte to 1024G such as 500000, 512K, 10M or 2G")
    return size


def write_upload_size(size: int | None) -> str:
    """Write a size as `read_upload_size` reads it; empty for None."""
    if size is None:
        return ""
    unit, factor = max(
        ((unit, factor) for unit, factor in _UNITS.items() if size % factor == 0), key=lambda each: each[1]
    )
    return f"{size // factor}{unit}"


def read_application_url(text: str, policy: AddressPolicy | None = None) -> str:
    """Read the URL of an origin, and return it as written if an edge can ask it.

    With `policy`, an address that may not be dialled is refused.
    """
    try:
        url = parse_application_url(text)
        if policy is not None and url.address is not None:
            policy.check(url.address, url.port)
    except (InvalidUrl, AddressRefused) as error:
        raise InvalidSetting(str(error)) from error
    return text


def read_webhook_url(text: str, policy: AddressPolicy) -> str:
    """Read the URL of a webhook, in canonical form: a delivery asks the very name that is written there.

    An address that may not be dialled is refused; a name is resolved and checked when it is dialled.
    """
    try:
        canonical = parse_webhook_url(text)
        url = parse_application_url(canonical.partition("?")[0])
        if url.address is not None:
            policy.check(url.address, url.port)
    except InvalidUrl as error:
        raise InvalidSetting(str(error)) from error
    except AddressRefused as error:
        raise InvalidSetting(f"{error}: no event could be delivered there") from error
    return canonical


def read_server_name(text: str) -> str:
    """Read the name asked for in TLS with the origin."""
    try:
        return parse_host_name(text)
    except InvalidName as error:
        raise InvalidSetting(str(error)) from error


def read_service_auth(text: str) -> str:
    """Read a value of X-Service-Auth, sent as it is: visible ASCII (RFC 9110 §5.5), too long to be guessed."""
    if not SHORTEST_SERVICE_AUTH <= len(text) <= LONGEST_SERVICE_AUTH or not _SERVICE_AUTH.fullmatch(text):
        raise InvalidSetting(
            f"expected {SHORTEST_SERVICE_AUTH} to {LONGEST_SERVICE_AUTH} visible ASCII characters; blanks only between"
        )
    return text


def read_root_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """Read the paths that go to the root of the origin, and leave out empty ones."""
    if len(paths) > MOST_ROOT_PATHS:
        raise InvalidSetting(f"at most {MOST_ROOT_PATHS} paths")
    for path in paths:
        if len(path) > MOST_ROOT_PATH_CHARACTERS:
            raise InvalidSetting(f"a path has at most {MOST_ROOT_PATH_CHARACTERS} characters")
        is_plain = path.isascii() and path.isprintable() and not set(path) & set(" ?#\\")
        if path and not (path.startswith("/") and is_plain):
            raise InvalidSetting(f"{path!r}: a path begins with / and has neither blanks, query nor fragment")
    return tuple(filter(None, paths))


def read_metadata_fields(keys: Sequence[str]) -> tuple[str, ...]:
    """Read the keys of metadata that origins get, and leave out empty ones and repetitions."""
    wanted = tuple(dict.fromkeys(filter(None, keys)))
    if len(wanted) > MOST_FIELDS:
        raise InvalidSetting(f"at most {MOST_FIELDS} keys")
    try:
        check_keys(wanted)
    except InvalidMetadata as error:
        raise InvalidSetting(str(error)) from error
    return wanted


def read_error_page(content: bytes) -> str:
    """Read an error page: HTML for browsers, at most `MAX_PAGE_BYTES` in UTF-8."""
    if len(content) > MAX_PAGE_BYTES:
        raise InvalidSetting(f"it has more than {MAX_PAGE_BYTES} bytes")
    try:
        html = content.decode()
    except UnicodeDecodeError as error:
        raise InvalidSetting("it is not UTF-8") from error
    if not html.strip() or "\0" in html:
        raise InvalidSetting("it is no page")
    return html
