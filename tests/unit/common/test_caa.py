"""Who may issue: the record set that counts, and what it says (RFC 8659, RFC 8657)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from common.caa import Authorization, find_authorization, list_allowed_cas, may_issue
from common.dns import Answer, Outcome
from common.records import RecordType

DOMAIN = "www.shop.customer.example"
ACCOUNT = "https://acme.ca.example/acct/1"


class Questions:
    """A DNS of CAA answers; what is not in it does not exist."""

    def __init__(self, **answers: Answer) -> None:
        self._answers = {name.replace("_", "."): answer for name, answer in answers.items()}
        self.asked: list[str] = []

    async def ask(self, name: str, kind: RecordType, /) -> Answer:
        assert kind == "CAA"
        self.asked.append(name)
        return self._answers.get(name, Answer(Outcome.NO_NAME))

    async def resolve_confirmed(self, name: str, /, *kinds: RecordType) -> list[Answer]:
        return [await self.ask(name, kind) for kind in kinds]


def find(**answers: Answer) -> Authorization:
    return asyncio.run(find_authorization(Questions(**answers), DOMAIN))


def records(*values: str) -> Answer:
    return Answer(Outcome.RECORDS, values)


NO_DATA = Answer(Outcome.NO_DATA)
SERVFAIL = Answer(Outcome.SERVER_FAILURE)
TIMEOUT = Answer(Outcome.TIMEOUT)


def test_closest_name_with_records_decides() -> None:
    near, far = records("0 issue near.example"), records("0 issue far.example")
    assert find(customer_example=far, shop_customer_example=near).records == near.values
    found = find(www_shop_customer_example=NO_DATA, customer_example=far, example=near)
    assert (found.name, found.records) == ("customer.example", far.values)


def test_without_any_records_anybody_may() -> None:
    found = find(customer_example=NO_DATA)
    assert (found.is_known, found.records) == (True, ())


@pytest.mark.parametrize("failure", [SERVFAIL, TIMEOUT])
def test_a_name_that_could_not_be_asked_is_not_passed_over(failure: Answer) -> None:
    found = find(shop_customer_example=failure, customer_example=records("0 issue far.example"))
    assert (found.is_known, found.name, found.records) == (False, "shop.customer.example", ())
    # beyond the set that counts, a failure does not matter
    assert find(www_shop_customer_example=records("0 issue a.example"), customer_example=failure).is_known


def test_the_root_is_not_asked() -> None:
    questions = Questions()
    asyncio.run(find_authorization(questions, DOMAIN))
    assert questions.asked == [DOMAIN, "shop.customer.example", "customer.example", "example"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), True),
        (("0 issue ca.example",), True),
        (("0 issue CA.Example",), True),
        (("0 issue other.example",), False),
        (("0 issue other.example", "0 issue ca.example"), True),
        (("0 issue ;",), False),
        (("0 issue ",), False),
        (("0 issue ; policy=ev",), False),
        (("0 issue  ca.example ; policy=ev",), True),
        (("0 issue ca.example; %%",), False),
        (("0 issue ca example",), False),
        # only `issue` speaks of single names
        (("0 issuewild ;",), True),
        (("0 issuewild ca.example", "0 issue ;"), False),
        (("0 iodef mailto:security@customer.example",), True),
        (("0 issuemail ;",), True),
        # critical
        (("128 issue ca.example",), True),
        (("128 iodef mailto:a@b.example", "0 issue ca.example"), True),
        (("128 tbs unknown", "0 issue ca.example"), False),
        (("0 tbs unknown",), True),
        (("0 tbs unknown", "0 issue ca.example"), True),
        # RFC 8657
        ((f"0 issue ca.example; accounturi={ACCOUNT}",), True),
        (("0 issue ca.example; accounturi=https://acme.ca.example/acct/2",), False),
        (("0 issue ca.example; validationmethods=http-01",), True),
        (("0 issue ca.example; validationmethods=dns-01,http-01",), True),
        (("0 issue ca.example; validationmethods=dns-01",), False),
        ((f"0 issue ca.example; validationmethods=http-01; accounturi={ACCOUNT}",), True),
        ((f"0 issue ca.example;accounturi={ACCOUNT};validationmethods=dns-01",), False),
        (("0 issue ca.example; accounturi=x", "0 issue ca.example"), True),
    ],
)
def test_who_may_issue(values: tuple[str, ...], *, expected: bool) -> None:
    assert may_issue(values, ["also.example", "ca.example"], ACCOUNT) is expected


def test_authority_that_does_not_say_its_name_is_stopped_only_where_nobody_may() -> None:
    assert may_issue(["0 issue other.example"], [], ACCOUNT)
    assert not may_issue(["0 issue ;"], [], ACCOUNT)
    assert not may_issue(["0 issue other.example; validationmethods=dns-01"], [], ACCOUNT)


def test_names_for_people() -> None:
    records = (
        "0 issue B.example; x=y",
        "0 issue ;",
        "0 iodef mailto:a@b",
        "0 issue a.example",
        "0 issuewild c.example",
    )
    found = Authorization(Outcome.RECORDS, "example", records)
    assert list_allowed_cas(found) == ["b.example", "a.example"]
    assert list_allowed_cas(replace(found, is_wildcards=True)) == ["c.example"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("0 issue ca.example",), True),
        (("0 issue other.example",), False),
        (("0 issue other.example", "0 issuewild ca.example"), True),
        (("0 issue ca.example", "0 issuewild ;"), False),
        (("0 issuewild other.example",), False),
        (("128 issuewild ca.example; validationmethods=http-01",), False),
        (("0 iodef mailto:a@b",), True),
    ],
)
def test_who_may_issue_for_a_wildcard(values: tuple[str, ...], *, expected: bool) -> None:
    assert may_issue(values, ["ca.example"], ACCOUNT, "dns-01", is_wildcards=True) is expected
