import pytest

from api.answers.lists import page_of
from api.schemas.queries import ListQuery


@pytest.mark.parametrize(
    ("total", "page", "size", "pages", "next_page", "previous_page"),
    [
        (0, 0, 50, 0, None, None),
        (0, 3, 50, 0, None, None),
        (1, 0, 50, 1, None, None),
        (50, 0, 50, 1, None, None),
        (51, 0, 50, 2, 1, None),
        (51, 1, 50, 2, None, 0),
        (5, 1, 2, 3, 2, 0),
        (5, 3, 2, 3, None, 2),
        (5, 9, 2, 3, None, 2),
    ],
)
def test_pages_follow_from_total_and_size(
    total: int, page: int, size: int, pages: int, next_page: int | None, previous_page: int | None
) -> None:
    items: list[str] = []
    result = page_of(items, total, ListQuery(page=page, size=size))

    assert result == {
        "items": [],
        "total": total,
        "page": page,
        "limit": size,
        "count": 0,
        "pages": pages,
        "nextPage": next_page,
        "prevPage": previous_page,
    }
