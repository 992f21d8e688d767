"""SPF records: merging two into one, and counting the DNS look-ups that a mail server makes for one.

Rules (RFC 7208)
    a name has one SPF record at most (§3.2), so a second one must be merged into the first
    merged, every mechanism of both stays, in order, before the policy for all others; the policy and the modifiers are
        those of the record that is there: the domain's owner chose them
    ``redirect`` of a merged-in record becomes ``include``: it would replace what the other record states (§6.1)
    ``include``, ``a``, ``mx``, ``ptr``, ``exists`` and ``redirect`` take a look-up each, in included records too; a
        record that takes more than ten is an error to mail servers (§4.6.4)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from common.dns.questions import Answer
from common.records import normal_name

MOST_LOOKUPS = 10

_VERSION = "v=spf1"
_TERM = re.compile(r"([+?~-]?)([a-z][a-z0-9_.-]*)(?:([:/=])(.*))?", re.IGNORECASE)
_MECHANISMS = frozenset({"all", "include", "a", "mx", "ptr", "ip4", "ip6", "exists"})
_LOOKED_UP = frozenset({"include", "a", "mx", "ptr", "exists"})


@dataclass(frozen=True, slots=True)
class Merged:
    """The record that replaces several SPF records.

    `lookups` is the number that is known of; None where an included record could not be asked.
    """

    text: str
    lookups: int | None

    @property
    def is_publishable(self) -> bool:
        """Whether mail servers accept the record: it takes no more look-ups than they make."""
        return self.lookups is not None and self.lookups <= MOST_LOOKUPS


def is_spf(text: str) -> bool:
    """Return whether a text is an SPF record: the version, and a space or nothing after it (§4.5)."""
    return text[: len(_VERSION)].lower() == _VERSION and text[len(_VERSION) :][:1] in ("", " ")


def merge(existing: Sequence[str], requested: Iterable[str], texts: Mapping[str, Answer]) -> Merged:
    """Return one record that replaces all of them. `texts`: TXT records by name, of what the records include."""
    first = _Terms.of(existing[0])
    mechanisms, policy, modifiers = [*first.mechanisms], first.policy, first.modifiers
    known = set(map(_key, mechanisms))
    for other in map(_Terms.of, (*existing[1:], *requested)):
        for mechanism in (*other.mechanisms, *other.redirects_as_includes(but=first.redirect)):
            if _key(mechanism) not in known:
                known.add(_key(mechanism))
                mechanisms.append(mechanism)
        if policy is None and first.redirect is None:
            policy = other.policy
    text = " ".join((_VERSION, *mechanisms, *([policy] if policy else []), *modifiers))
    return Merged(text, count_lookups(text, texts))


def is_covered(existing: str, merged: Merged) -> bool:
    """Return whether the existing record already allows all that the merged one does."""
    return sorted(map(_key, existing.split())) == sorted(map(_key, merged.text.split()))


def included_names(text: str) -> list[str]:
    """Return the names whose records a mail server reads for this one.

    Names that depend on the mail are left out (§7).
    """
    terms = _Terms.of(text)
    includes = [_target(each) for each in terms.mechanisms if _name(each) == "include"]
    names = [*includes, *([terms.redirect] if terms.redirect and terms.policy is None else [])]
    return [normal_name(name) for name in names if name and "%" not in name]


def count_lookups(text: str, texts: Mapping[str, Answer]) -> int | None:
    """Count the DNS look-ups of a record, with those of the records it includes.

    None where one of them could not be asked. More than `MOST_LOOKUPS` are not counted to the end.
    """
    return _count(text, texts, frozenset())


def _count(text: str, texts: Mapping[str, Answer], above: frozenset[str]) -> int | None:
    terms = _Terms.of(text)
    own = sum(_name(each) in _LOOKED_UP for each in terms.mechanisms)
    total = own + (terms.redirect is not None and terms.policy is None)
    for name in included_names(text):
        if total > MOST_LOOKUPS:
            return total
        answer = texts.get(name)
        if answer is None or not answer.outcome.is_known:
            return None
        if name in above:
            return MOST_LOOKUPS + 1  # a circle, which takes look-ups without end
        included = next(filter(is_spf, answer.values), None)
        counted = 0 if included is None else _count(included, texts, above | {name})
        if counted is None:
            return None
        total += counted
    return total


@dataclass(frozen=True, slots=True)
class _Terms:
    """The terms of one record: mechanisms without ``all``, which is the policy; modifiers as written."""

    mechanisms: tuple[str, ...]
    policy: str | None
    modifiers: tuple[str, ...]
    redirect: str | None

    @classmethod
    def of(cls, text: str) -> _Terms:
        """Parse a record."""
        terms = text.split()[1:]
        modifiers = tuple(term for term in terms if _is_modifier(term))
        mechanisms = [term for term in terms if not _is_modifier(term)]
        policy = next((term for term in mechanisms if _name(term) == "all"), None)
        redirect = next((_target(term) for term in modifiers if _name(term) == "redirect"), None)
        return cls(tuple(term for term in mechanisms if _name(term) != "all"), policy, modifiers, redirect)

    def redirects_as_includes(self, *, but: str | None) -> list[str]:
        """Return the record's redirect as an ``include``, unless it leads where `but` leads."""
        has_own = self.redirect is not None and self.policy is None
        return [f"include:{self.redirect}"] if has_own and self.redirect != but else []


def _is_modifier(term: str) -> bool:
    match = _TERM.fullmatch(term)
    return match is not None and match[3] == "=" and match[2].lower() not in _MECHANISMS


def _name(term: str) -> str:
    match = _TERM.fullmatch(term)
    return match[2].lower() if match else ""


def _target(term: str) -> str:
    match = _TERM.fullmatch(term)
    return match[4] or "" if match else ""


def _key(term: str) -> str:
    """Return a key that is equal for terms that mean the same.

    ``+`` is the default (§4.6.2), and names have no case.
    """
    return term.lower().removeprefix("+")
