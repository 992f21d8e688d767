"""Query parameters: each at most once, each of its type, and a refusal that names the one that is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, cast, get_args

from multidict import MultiMapping

from api.errors import UNRESOLVED, Refused, invalid_parameter
from api.schemas import list_cursor
from common.db import domain_list_query
from common.db.domain_list_query import ListKey
from common.db.domains import Status
from common.errors import InvalidName
from common.metadata import KEY
from common.names import DomainName, parse_enrollable

DEFAULT_SIZE = 50
LARGEST_SIZE = 200
LONGEST_SEARCH = 253
ListSort = Literal["domain", "-domain", "createdAt", "-createdAt", "expiresAt", "-expiresAt"]
METADATA = "metadata."
"""How the parameter begins that asks for a note."""
_LARGEST_PAGE = 10**9
_SORTS: dict[ListSort, domain_list_query.Sort] = {
    "domain": "name",
    "-domain": "-name",
    "createdAt": "added",
    "-createdAt": "-added",
    "expiresAt": "expiry",
    "-expiresAt": "-expiry",
}


@dataclass(frozen=True, slots=True)
class ListQuery:
    """One page of a list of Power or Secure."""

    page: int = 0
    size: int = DEFAULT_SIZE
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class PartQuery:
    """A part of a list that is sorted or searched; the next one begins after `after`."""

    sort: domain_list_query.Sort
    text: str
    after: ListKey | None
    size: int
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class MetadataQuery:
    """A part of the domains that have this note, in the order of names."""

    key: str
    value: str
    after: str
    size: int
    status: Status | None = None


def parse_list_query(query: MultiMapping[str]) -> ListQuery | PartQuery | MetadataQuery:
    """Read the query of a list: a page by its number, or a part where it sorts, searches or asks for a note.

    A page is in the order the domains were added. Raises: `Refused` that names the parameter.
    """
    refuse_without_domain(query, "rootDomain")
    status = parse_optional_text(query, "status")
    if status not in (None, "active", "inactive"):
        raise Refused(invalid_parameter("status"))
    if named := [name for name in query if name.startswith(METADATA)]:
        return _parse_metadata_query(query, named, cast("Status | None", status))
    if is_of_part(query):
        refuse_beside_part(query, "page")
        sort = _SORTS.get(cast("ListSort", parse_optional_text(query, "sort") or "createdAt"))
        if sort is None:
            raise Refused(invalid_parameter("sort"), hint=f"one of {', '.join(get_args(ListSort))}")
        size = parse_integer(query, "size", default=DEFAULT_SIZE, least=1, most=LARGEST_SIZE)
        return PartQuery(sort, parse_search(query), parse_after(query, sort), size, cast("Status | None", status))
    return ListQuery(
        page=parse_integer(query, "page", default=0, least=0, most=_LARGEST_PAGE),
        size=parse_integer(query, "size", default=DEFAULT_SIZE, least=1, most=LARGEST_SIZE),
        status=cast("Status | None", status),
    )


def _parse_metadata_query(query: MultiMapping[str], named: Sequence[str], status: Status | None) -> MetadataQuery:
    for name in ("page", "sort", "search"):
        if name in query:
            raise Refused(invalid_parameter(name), hint="a list by metadata is in the order of names, in parts: after")
    name, key = named[0], named[0].removeprefix(METADATA)
    if not KEY.fullmatch(key) or len(named) > 1:
        raise Refused(invalid_parameter(name[:100]), hint="one key of metadata, such as metadata.plan=pro")
    value = parse_text(query, name)
    if not value.isprintable():
        raise Refused(invalid_parameter(name), hint="metadata has no control characters")
    size = parse_integer(query, "size", default=DEFAULT_SIZE, least=1, most=LARGEST_SIZE)
    after = parse_optional_text(query, "after")
    return MetadataQuery(key, value, "" if after is None else parse_name(after).text, size, status)


def is_of_part(query: MultiMapping[str]) -> bool:
    """Return whether the query asks for a part of a list that is sorted or searched."""
    return any(name in query for name in ("sort", "search", "after"))


def refuse_beside_part(query: MultiMapping[str], *names: str) -> None:
    """Refuse a parameter that only a list in its own order takes. Raises: `Refused`."""
    for name in names:
        if name in query:
            hint = "with sort, search or after, the next part is asked for by after, the `next` of the one before"
            raise Refused(invalid_parameter(name), hint=hint)


def refuse_without_domain(query: MultiMapping[str], name: str) -> None:
    """Refuse a parameter of a question about one domain where none is named. Raises: `Refused`."""
    if name in query:
        raise Refused(invalid_parameter("domain"), hint=f"{name} asks about one domain: send domain too")


def parse_search(query: MultiMapping[str]) -> str:
    """Return a part of a name, in lower case; empty when it is not there. Raises: `Refused`."""
    text = (parse_optional_text(query, "search") or "").lower()
    if not re.fullmatch(f"[a-z0-9._-]{{0,{LONGEST_SEARCH}}}", text, re.ASCII):
        raise Refused(invalid_parameter("search"), hint="a part of a name: letters, digits, hyphens and dots")
    return text


def parse_after(query: MultiMapping[str], sort: domain_list_query.Sort) -> ListKey | None:
    """Return where the part begins; None at the start of the list. Raises: `Refused`."""
    text = parse_optional_text(query, "after")
    if text is None:
        return None
    try:
        return list_cursor.from_text(text, sort)
    except ValueError as error:
        hint = "the `next` of the part before, with the same sort"
        raise Refused(invalid_parameter("after"), hint=hint) from error


def parse_eligibility_query(query: MultiMapping[str]) -> DomainName:
    """Return the name that is asked about. Raises: `Refused`.

    It is the domain, or with ``rootDomain=true`` its root.
    """
    wants_root = parse_flag(query, "rootDomain")
    name = parse_name(parse_text(query, "domain"))
    return DomainName(name.registrable, name.registrable, None) if wants_root else name


def parse_name(text: str) -> DomainName:
    """Parse the name of a domain. Raises: `Refused` for a text that is none."""
    try:
        return parse_enrollable(text)
    except InvalidName as error:
        raise Refused(UNRESOLVED, hint=str(error)) from error


def cursor_name(query: MultiMapping[str]) -> str:
    """Return the parameter at which a part of a list that goes back in time begins: ``after``, or ``before``.

    Both take the `next` of the part before. Raises: `Refused` where both are there.
    """
    if "before" in query and "after" in query:
        raise Refused(invalid_parameter("before"), hint="after and before are the same here: send one of them")
    return "before" if "before" in query else "after"


def parse_flag(query: MultiMapping[str], name: str) -> bool:
    """Read ``true`` or ``false``; false when it is not there. Raises: `Refused`."""
    text = parse_optional_text(query, name)
    if text not in (None, "true", "false"):
        raise Refused(invalid_parameter(name))
    return text == "true"


def parse_text(query: MultiMapping[str], name: str) -> str:
    """Return a parameter that must be there. Raises: `Refused`."""
    text = parse_optional_text(query, name)
    if text is None:
        raise Refused(invalid_parameter(name))
    return text


def parse_optional_text(query: MultiMapping[str], name: str) -> str | None:
    """Return a parameter, or None. Raises: `Refused` for a parameter sent twice."""
    values = query.getall(name, [])
    if len(values) > 1:
        raise Refused(invalid_parameter(name))
    return values[0] if values else None


def parse_integer(query: MultiMapping[str], name: str, *, default: int, least: int, most: int) -> int:
    """Return an integer within bounds. Raises: `Refused`."""
    text = parse_optional_text(query, name)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) or not least <= int(text) <= most:
        raise Refused(invalid_parameter(name))
    return int(text)


def parse_optional_date(query: MultiMapping[str], name: str) -> date | None:
    """Read a date such as ``2026-01-31``. Raises: `Refused`."""
    text = parse_optional_text(query, name)
    if text is None:
        return None
    try:
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
            raise ValueError(text)
        return date.fromisoformat(text)
    except ValueError as error:
        raise Refused(invalid_parameter(name), hint="expected a date like 2026-01-31") from error
