"""The handbook and the README agree with the code, with each other, and link to pages that exist."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from api.auth import TokenFault
from api.errors import REVIEW_POWER, Refused, status_of
from api.pages import handbook
from common.connect.rights import BeyondRights
from common.db import flow_ends
from common.db.events import EventType
from common.domain_check.registration import RdapFailure
from common.enrolment.outcome import EnrolmentCode
from common.flow_states import State
from common.settings import Settings
from tests import reference
from tests.children import ROOT

HANDBOOK = Path(ROOT) / "api/handbook"
PAGES = sorted(HANDBOOK.glob("*.md"))
CONTENTS = [name for group in handbook.CONTENTS.values() for name in group]
README = Path(ROOT) / "README.md"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_SETTING = re.compile(r"`((?:[A-Z]+_)+[A-Z0-9]+)`|`(LOG_LEVEL|ISSUER)`")
_NAMERS: dict[str, int | None] = {"Refused": None, "InvalidConfiguration": None, "Refusal": 2, "CertificateUnusable": 0}
"""Where calls take a code: by the name `code`, and at this place."""
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def loaded() -> handbook.Handbook:
    return handbook.Handbook.load()


def anchors(page: Path) -> set[str]:
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(page.read_text())}


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.name)
def test_links_lead_to_pages_and_headings_that_exist(page: Path) -> None:
    for link in _LINK.findall(page.read_text("utf-8")):
        if link.startswith("http"):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_readme_is_short_and_leads_to_every_page() -> None:
    text = README.read_text("utf-8")
    assert len(text.splitlines()) <= 200
    assert {f"api/handbook/{page.name}" for page in PAGES} - set(_LINK.findall(text)) == set()


def test_every_setting_and_no_other_is_in_the_reference() -> None:
    rows = [line for line in (HANDBOOK / "settings.md").read_text("utf-8").splitlines() if line.startswith("| `")]
    named = [name or short for row in rows for name, short in _SETTING.findall(row.split("|")[1])]
    assert sorted(named) == sorted(field.name.upper() for field in fields(Settings))


def test_generated_references_are_what_the_code_says() -> None:
    stale = [page.name for page, text in reference.generated().items() if page.read_text("utf-8") != text]
    assert stale == [], "run python -m tests.reference"


def test_the_walk_in_the_readme_is_the_handbooks() -> None:
    walk = README.read_text("utf-8").split("## Five minutes to a domain of your own\n\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n.*?```", walk, re.DOTALL)
    assert len(blocks) == 3
    assert all(block in (HANDBOOK / "start.md").read_text("utf-8") for block in blocks)


def test_every_page_is_in_the_contents() -> None:
    assert sorted(CONTENTS) == [page.stem for page in PAGES]


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("certificate not issued", "troubleshooting"),
        ("rotate secret", "security"),
        ("delete application", "api"),
        ("move from another vendor", "moving"),
        ("webhook signature", "webhooks"),
        ("postgres down", "running"),
        ("backup", "backup"),
        ("add an edge", "running"),
        ("rate limit", "errors"),
        ("CAA", "troubleshooting"),
        ("wildcard", "power"),
        ("502", "errors"),
        ("certificate", "secure"),
        ("redirects", "secure"),
        ("root path", "power"),
        ("replay", "webhooks"),
        ("rotate", "security"),
        ("root domain", "secure"),
        ("CNAME", "power"),
        ("transfer", "ownership"),
        ("idempotency", "errors"),
        ("CSP", "modal"),
        ("pagination", "unsupported"),
        ("apex", "unsupported"),
        ("bring your own certificate", "secure"),
        ("SSO", "unsupported"),
        ("test mode", "applications"),
        ("versioning", "versioning"),
    ],
)
def test_a_search_shows_the_page_that_answers_it_first(loaded: handbook.Handbook, query: str, page: str) -> None:
    assert loaded.search(query)[0].page == page


def test_a_search_reads_the_handbook_for_few_words(loaded: handbook.Handbook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone may search, on the loop that serves every partner."""
    asked: set[str] = set()
    compile_ = re.compile

    def noted(pattern: str, *flags: int) -> re.Pattern[str]:
        asked.add(pattern)
        return compile_(pattern, *flags)

    monkeypatch.setattr(re, "compile", noted)
    loaded.search(" ".join("abcdefghijklmnopqrstuvwxyz" * 2))
    assert 1 <= len(asked) <= 8


def test_every_webhook_event_has_its_row() -> None:
    rows = [line for line in (HANDBOOK / "webhooks.md").read_text("utf-8").splitlines() if line.startswith("| `")]
    named = {event for row in rows for event in re.findall(r"`([a-z_.]+)`", row.split("|")[1])}
    assert set(get_args(EventType)) <= named


def test_each_code_of_an_error_has_one_address(loaded: handbook.Handbook) -> None:
    html = loaded.show("errors") or ""
    anchors = re.findall(r' id="([^"]+)"', html)
    assert len(anchors) == len(set(anchors))
    assert {"not_eligible", "not_enrolled", "enrolled_too_often", "blocked", "of-the-api"} <= set(anchors)


def test_the_codes_of_the_api_are_sorted_and_each_leads_to_its_meaning_then_its_example() -> None:
    text = (HANDBOOK / "errors.md").read_text("utf-8")
    rows = re.findall(r"^\| \[`(\w+)`\]\(#(\w+)\) \| .+ \| (.+) \|$", text, re.MULTILINE)
    codes = [code for code, _, _ in rows]
    assert codes == sorted(reference.error_codes())
    assert [target for _, target, _ in rows] == codes
    examples = json.loads(reference.ERROR_EXAMPLES.read_text("utf-8"))
    sections = dict(re.findall(r"^### `(\w+)`\n\n(.+?)(?=\n### |\Z)", text, re.MULTILINE | re.DOTALL))
    assert list(sections) == codes
    for code, _, meaning in rows:
        first, _, rest = sections[code].partition("\n")
        assert first.casefold().startswith(meaning.casefold()), code
        assert ("```http" in rest) == (code in examples), code
    assert set(examples) <= set(codes)


def test_each_code_of_the_api_has_an_example_or_says_when_it_appears() -> None:
    """`appears` stands in `api/error_codes.json` for what no single request brings about."""
    examples = set(json.loads(reference.ERROR_EXAMPLES.read_text("utf-8")))
    unshown = {code for code, each in reference.error_codes().items() if "appears" in each}
    assert examples | unshown == set(reference.error_codes())
    assert examples & unshown == set()


def test_the_statuses_of_refused_changes_are_those_of_the_page() -> None:
    _, _, rest = (HANDBOOK / "errors.md").read_text("utf-8").partition("## Statuses of refused changes")
    rows = re.findall(r"^\| (4\d\d) \| (.+) \|$", rest.partition("\n## ")[0], re.MULTILINE)
    shown = {code: int(status) for status, codes in rows for code in re.findall(r"`([a-z_]+)`", codes)}
    given = {code: status_of(Refused(REVIEW_POWER, code=code), by_kind=True) for code in reference.error_codes()}
    of_flows = {"already_enrolled"}
    assert shown == {code: status for code, status in given.items() if status != 502 and code not in of_flows}


def test_a_link_to_a_code_leads_to_its_section(loaded: handbook.Handbook) -> None:
    html = loaded.show("errors") or ""
    assert [code for code in reference.error_codes() if f'<h3 id="{code}">' not in html] == []
    assert '<a href="#certificate_chain_incomplete"><code>certificate_<wbr>chain_<wbr>incomplete</code></a>' in html


def _codes_in(path: Path) -> Iterator[str]:
    """The codes that a module's calls give to errors, where they stand in it as text."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in _NAMERS:
            place = _NAMERS[name]
            values = [node.args[place]] if place is not None and len(node.args) > place else []
            values += [each.value for each in node.keywords if each.arg == "code"]
            yield from (each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str))


def test_each_code_that_the_api_gives_an_error_is_on_the_page() -> None:
    given = {code for path in (Path(ROOT) / "api").rglob("*.py") for code in _codes_in(path)}
    assert {"scope", "plan_changed", "key_invalid", "no_records", "step_one"} <= given
    given |= {each.value for each in (*TokenFault, *EnrolmentCode, *RdapFailure)} | set(flow_ends.ENDS)
    given |= {f"flow_{each}" for each in State} | {BeyondRights.code}
    assert given - set(reference.error_codes()) == set()
