"""``/docs``: every page of the handbook, with links that lead somewhere, and a search."""

from __future__ import annotations

import re

from api.operations import OPERATIONS
from api.pages.handbook import CONTENTS
from api.pages.samples import LANGUAGES
from tests.integration.api.conftest import Service

NAMES = [name for group in CONTENTS.values() for name in group]


async def get(service: Service, path: str, accept: str = "*/*") -> tuple[int, str]:
    async with service.session.get(service.url + path, headers={"Accept": accept}) as response:
        return response.status, await response.text()


async def test_every_page_is_shown_and_its_links_lead_somewhere(service: Service) -> None:
    pages = {f"/docs/{name}": (await get(service, f"/docs/{name}"))[1] for name in NAMES}
    for path, page in pages.items():
        assert "<h1" in page, path
        assert "<!--" not in page.removeprefix("<!doctype html>"), path
        for link in re.findall(r'href="([^"]+)"', page):
            target, _, anchor = link.partition("#")
            target = target or path
            assert target in pages or target in ("/docs", f"{path}.md") or target.startswith("https://"), (
                path,
                link,
            )
            if anchor and target in pages:
                assert f'id="{anchor}"' in pages[target], (path, link)


async def test_the_first_page_is_shown_without_authentication(service: Service) -> None:
    _, page = await get(service, "/docs")
    assert "Start" in page
    assert (await get(service, "/docs/"))[1] == page


async def test_a_search_leads_to_the_section_that_has_all_words(service: Service) -> None:
    status, page = await get(service, "/docs?q=retry-after+deliveries")
    assert status == 200
    assert '<a href="/docs/webhooks#answers-and-retries">' in page
    _, page = await get(service, "/docs?q=EDGE_WORKERS")
    assert "/docs/settings#settings" in page
    assert "<mark>EDGE_WORKERS</mark>" in page


async def test_what_is_searched_for_is_text(service: Service) -> None:
    _, page = await get(service, "/docs?q=%3Cscript%3Ealert(1)%3C/script%3E")
    assert "<script>alert" not in page
    assert "Nothing found" in page


async def test_each_page_is_markdown_too_for_programs_that_read(service: Service) -> None:
    status, listed = await get(service, "/llms.txt")
    assert status == 200
    assert listed.startswith("# Frontage\n")
    for name in NAMES:
        assert f"({service.settings.base_url}/docs/{name}.md)" in listed
        status, page = await get(service, f"/docs/{name}.md")
        assert status == 200
        assert page.startswith("# ")


async def test_each_operation_has_samples_and_can_be_tried(service: Service) -> None:
    _, page = await get(service, "/docs/api")
    sections = dict(re.findall(r"<h3 id=\"[^\"]+\">([^<]+)</h3>(.*?)(?=<h[23] )", page, re.DOTALL))
    for operation in (each for each in OPERATIONS if each.media_type == "application/json"):
        section = sections[f"{operation.method} {operation.path}"]
        assert re.findall(r'data-language="(\w+)"', section) == list(LANGUAGES.values())
        assert f'data-method="{operation.method}"' in section


async def test_a_page_that_does_not_exist_is_not_found(service: Service) -> None:
    for path in ("/docs/nothing", "/docs/..%2f..%2fREADME"):
        status, text = await get(service, path)
        assert status == 404
        assert '"message":"Not Found"' in text
    status, page = await get(service, "/docs/nothing", "text/html,application/xhtml+xml,*/*;q=0.8")
    assert status == 404
    assert "There is no such page" in page
    assert 'href="/docs/start"' in page
