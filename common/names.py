"""Domain names: text from outside becomes one canonical form, and knows where its registrable part begins.

Owns the rules for host names and the public suffix list. It asks no DNS.

Canonical form
    lower-case A-labels (RFC 5891, mapped by UTS #46), no trailing dot, up to 253 characters (RFC 1035 §2.3.4)
    labels hold letters, digits and hyphens, and neither begin nor end with a hyphen (RFC 1123 §2.1)
    the last label is not a number, so no form of an IPv4 address is a name (WHATWG URL, "ends in a number")

Wildcards
    ``*.customer.example`` stands for the names one label beneath ``customer.example`` (RFC 9525 §6.3): the asterisk is
    the whole first label, and no other
    there is none of a public suffix, nor of a name beneath which every name is one
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import idna
from publicsuffixlist import PublicSuffixList

from common.errors import InvalidName

MAX_NAME_CHARACTERS = 253
_MAX_TEXT_CHARACTERS = 4 * MAX_NAME_CHARACTERS  # before IDNA, which takes time on very long text
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PLACE = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
WILDCARD = "*."
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class DomainName:
    """A host name in canonical form, or a wildcard of one.

    `registrable` is the public suffix and one label (``example.co.uk``); `subdomain` is what stands
    before it, none for the root.
    """

    text: str
    registrable: str
    subdomain: str | None

    @property
    def is_root(self) -> bool:
        """Whether the name is the registrable domain itself."""
        return self.subdomain is None

    @property
    def is_wildcard(self) -> bool:
        """Whether the name stands for the names one label beneath `base_of` it."""
        return self.text.startswith(WILDCARD)

    @property
    def visited_host(self) -> str:
        """Return a host name that visitors come to: of a wildcard ``www`` beneath, for an example."""
        return f"www.{base_of(self.text)}" if self.is_wildcard else self.text

    def __str__(self) -> str:
        return self.text


def parse_domain(text: str) -> DomainName:
    """Parse a domain name that can be enrolled.

    Raises: `InvalidName`, also for a bare public suffix, which cannot be enrolled.
    """
    name = parse_host_name(text)
    registrable = _suffixes().privatesuffix(name)
    if registrable is None and "." not in name:
        raise InvalidName("a whole domain has a dot, such as customer.example")
    if registrable is None:
        raise InvalidName("a public suffix has no single owner")
    return DomainName(name, registrable, name.removesuffix(registrable).removesuffix(".") or None)


def parse_enrollable(text: str) -> DomainName:
    """Parse a domain name, or a wildcard (``*.customer.example``), that can be enrolled.

    Raises: `InvalidName`.
    """
    if "*" not in text[:_MAX_TEXT_CHARACTERS]:
        return parse_domain(text)
    base = text.removeprefix(WILDCARD)
    if base == text or "*" in base or not base:
        raise InvalidName("an asterisk is the whole first label of a wildcard, before a domain: *.customer.example")
    above = parse_domain(base)
    if len(above.text) > MAX_NAME_CHARACTERS - len(WILDCARD):
        raise InvalidName("a name has at most 253 characters")
    if _suffixes().privatesuffix(f"a.{above}") != above.registrable:
        raise InvalidName("a wildcard of public suffixes has no single owner")
    return DomainName(f"{WILDCARD}{above}", above.registrable, f"{WILDCARD}{above.subdomain or ''}".removesuffix("."))


def base_of(name: str) -> str:
    """Return the name that a wildcard is of, and any other name itself. Names are in canonical form."""
    return name.removeprefix(WILDCARD)


def wildcard_above(name: str) -> str:
    """Return the wildcard that stands for a host name in canonical form."""
    return f"{WILDCARD}{name.partition('.')[2]}"


def parse_subdomain(text: str, domain: str) -> str:
    """Return the labels before `domain` (a canonical name) in canonical form.

    They are DNS names, not host names, so underscores are allowed (RFC 8552).

    Raises: `InvalidName`.
    """
    if len(text) > _MAX_TEXT_CHARACTERS:
        raise InvalidName("a name has at most 253 characters")
    labels = [_to_a_labels(label) for label in text.split(".")]
    if not all(map(_PLACE.fullmatch, labels)):
        raise InvalidName("labels are of letters, digits, underscores and inner hyphens, up to 63 characters each")
    subdomain = ".".join(labels)
    if len(f"{subdomain}.{domain}") > MAX_NAME_CHARACTERS:
        raise InvalidName("a name has at most 253 characters")
    return subdomain


def parse_host_name(text: str) -> str:
    """Return any host name in canonical form, also a single label (``localhost``) or a public suffix.

    Raises: `InvalidName`.
    """
    if len(text) > _MAX_TEXT_CHARACTERS:
        raise InvalidName("a name has at most 253 characters")
    name = _to_a_labels(text).removesuffix(".")
    if len(name) > MAX_NAME_CHARACTERS:
        raise InvalidName("a name has at most 253 characters")
    labels = name.split(".")
    if not all(map(_LABEL.fullmatch, labels)):
        raise InvalidName("labels are of letters, digits and inner hyphens, up to 63 characters each")
    if _NUMBER.fullmatch(labels[-1]):
        raise InvalidName("an address is not a name")
    return name


def _to_a_labels(text: str) -> str:
    """Convert a name to lower-case A-labels.

    Raises: `InvalidName`.
    """
    if text.isascii() and "xn--" not in (lowered := text.lower()):
        return lowered
    try:
        return idna.encode(text, uts46=True, transitional=False).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError) as error:
        raise InvalidName("no valid internationalised name") from error


def load_public_suffixes() -> None:
    """Read the list now, so that the first request does not wait for it (0.1 s)."""
    _suffixes()


@cache
def _suffixes() -> PublicSuffixList:
    """Return the list as packaged, private section included; it is read once."""
    return PublicSuffixList()
