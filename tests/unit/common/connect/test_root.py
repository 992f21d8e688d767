"""Records at the root of a domain, as its provider can hold them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common.connect.root import accept_fewer_addresses, find_spare, fit_root, see_through_flattening
from common.dns import Answer, Outcome
from common.domain_check.providers import CAREFUL, Capabilities
from common.domain_check.zone_view import HostView, ZoneView
from common.domain_settings import DomainSettings
from common.flows.plan import Change, EntryStatus, JournalEntry
from common.flows.requested import RecordPurpose, Requested
from common.records import Record, RecordType

APEX = "customer.test"
SERVERS = ("192.0.2.1", "192.0.2.2", "2001:db8::1")
POWER = RecordPurpose("power", DomainSettings("https://app.test"))


def requested(kind: RecordType, host: str, value: str, purpose: RecordPurpose = POWER) -> Requested:
    return Requested(Record(kind, host, value, 300), purpose)


def fitted(*records: Requested, capabilities: Capabilities = CAREFUL) -> list[tuple[str, str, str]]:
    found = fit_root(records, APEX, capabilities, SERVERS)
    assert all(each.purpose in (POWER, RecordPurpose()) for each in found)
    return [(each.record.type, each.record.host, each.record.value) for each in found]


ROOT = requested("CNAME", "@", "target.test")
TWO = [("A", "@", "192.0.2.1"), ("A", "@", "192.0.2.2")]


def test_a_cname_at_the_root_becomes_addresses_of_ours() -> None:
    assert fitted(ROOT, requested("CNAME", "www", "target.test")) == [*TWO, ("CNAME", "www", "target.test")]
    assert fitted(ROOT, requested("A", "@", "192.0.2.2")) == TWO, "each once"


def test_a_provider_that_flattens_a_cname_keeps_it() -> None:
    assert fitted(ROOT, capabilities=replace(CAREFUL, root_cname=True)) == [("CNAME", "@", "target.test")]


def test_a_root_gets_as_many_addresses_as_its_provider_takes() -> None:
    one = replace(CAREFUL, most_root_addresses=1)
    both = [requested("A", "@", value) for value in SERVERS[:2]]
    assert fitted(*both, capabilities=one) == TWO[:1]
    assert fitted(ROOT, capabilities=one) == TWO[:1]
    assert fitted(*both, requested("AAAA", "@", SERVERS[2]), capabilities=one) == [TWO[0], ("AAAA", "@", SERVERS[2])]
    others = [
        requested("A", "@", "198.51.100.1", RecordPurpose()),
        requested("A", "@", "198.51.100.2", RecordPurpose()),
    ]
    assert len(fitted(*others, capabilities=one)) == 2, "addresses that are not ours are the partner's business"


def test_what_serves_no_product_stays_as_it_is() -> None:
    plain = requested("CNAME", "@", "elsewhere.test", RecordPurpose())
    assert fitted(plain) == [("CNAME", "@", "elsewhere.test")]


@pytest.mark.parametrize(
    ("here", "is_flattened"),
    [((), False), (SERVERS[:1], True), (SERVERS[:2], True), ((*SERVERS[:2], "198.51.100.9"), False)],
)
def test_a_root_with_the_addresses_of_its_cnames_target_has_the_cname(
    here: tuple[str, ...], is_flattened: bool
) -> None:
    answers: dict[RecordType, Answer] = {"A": Answer(Outcome.RECORDS, here), "CNAME": Answer(Outcome.NO_DATA)}
    known = Answer(Outcome.RECORDS, ("ns.test",))
    view = ZoneView(
        APEX, known, known, known, {APEX: HostView(APEX, answers)}, addresses={"target.test": frozenset(SERVERS)}
    )
    seen = see_through_flattening(view, [ROOT]).host(APEX)
    assert (seen.values("CNAME"), seen.values("A")) == ((("target.test",), ()) if is_flattened else ((), here))


@pytest.mark.parametrize(
    ("present", "spare"),
    [((True, False, False), {1}), ((False, True, True), {0}), ((False, False, False), set()), ((True,) * 3, set())],
)
def test_addresses_that_a_root_lacks_beside_another_of_their_family_are_spare(
    present: tuple[bool, ...], spare: set[int]
) -> None:
    both = [requested("A", "@", value) for value in SERVERS[:2]]
    others = [requested("CNAME", "www", "target.test"), requested("A", "@", "198.51.100.1", RecordPurpose())]
    records = [*both, requested("AAAA", "@", SERVERS[2]), *others]
    assert find_spare(records, APEX, [*present, False, False], SERVERS) == spare


def root_entry(before: tuple[str, ...], status: EntryStatus, name: str = APEX) -> JournalEntry:
    return JournalEntry(Change("replace", name, "@", "A", before, SERVERS[:2], 300, 300, ""), status)


@pytest.mark.parametrize(
    ("before", "status", "there", "after"),
    [
        (("198.51.100.9",), "partly_written", SERVERS[:1], SERVERS[:1]),
        (SERVERS[:1], "not_written", SERVERS[:1], SERVERS[:1]),
        (("198.51.100.9",), "partly_written", (SERVERS[0], "198.51.100.9"), None),
        (("198.51.100.9",), "not_written", ("198.51.100.9",), None),
        (("198.51.100.9",), "partly_written", (), None),
    ],
)
def test_a_root_that_took_fewer_addresses_of_ours_counts_as_written(
    before: tuple[str, ...], status: EntryStatus, there: tuple[str, ...], after: tuple[str, ...] | None
) -> None:
    entry = root_entry(before, status)
    now: dict[tuple[str, RecordType], frozenset[str]] = {(APEX, "A"): frozenset(there)}
    (settled,) = accept_fewer_addresses([entry], now, APEX, SERVERS)
    assert (settled.status, settled.change.after) == (("written", after) if after else (status, SERVERS[:2]))
    below = root_entry(before, status, f"www.{APEX}")
    assert accept_fewer_addresses([below], {below.change.key: frozenset(there)}, APEX, SERVERS) == (below,)
