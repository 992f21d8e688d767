"""The envelopes of lists: a page by its number (the specification's), and for every other list a part of it."""

from __future__ import annotations

from typing import Generic, TypeVar

from typing_extensions import TypedDict

from api.schemas.queries import ListQuery

Item = TypeVar("Item")


class Page(TypedDict, Generic[Item]):
    """A page of a list, by its number."""

    items: list[Item]
    total: int
    """Domains that match the filter."""
    page: int
    limit: int
    count: int
    """Items in this page."""
    pages: int
    nextPage: int | None
    prevPage: int | None


class ListOf(TypedDict, Generic[Item]):
    """A part of a list."""

    items: list[Item]
    limit: int
    count: int
    """Items in this part. A search can find fewer than `limit`, even none, while the list goes on."""
    next: str | None
    """For `after`; null at the end of the list."""


def page_of(items: list[Item], total: int, query: ListQuery) -> Page[Item]:
    """Render a page of a list of `total` items. `prevPage` of a page beyond the end is the last page."""
    pages = -(-total // query.size)
    return {
        "items": items,
        "total": total,
        "page": query.page,
        "limit": query.size,
        "count": len(items),
        "pages": pages,
        "nextPage": query.page + 1 if query.page + 1 < pages else None,
        "prevPage": min(query.page, pages) - 1 if min(query.page, pages) > 0 else None,
    }


def list_of(items: list[Item], following: str | None, limit: int) -> ListOf[Item]:
    """Render a part of a list; `following` is where the next one begins, if there is one."""
    return {"items": items, "limit": limit, "count": len(items), "next": following}
