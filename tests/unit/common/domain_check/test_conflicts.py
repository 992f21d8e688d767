"""Conflicts between requested records and those of a zone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from common.dns import Answer, Chain, Outcome
from common.domain_check.conflicts import CertificateNeeds, Conflict, Rule, find_conflicts, hosts_concerned
from common.domain_check.reading import types_to_ask
from common.domain_check.zone_view import HostView, ZoneView
from common.records import Record, RecordType, identity, owner_name

APEX = "shop.test"
NAME_SERVERS = Answer(Outcome.RECORDS, ("ns1.host.test", "ns2.host.test"))
ABSENT = Answer(Outcome.NO_DATA)

Zone = Mapping[str, Mapping[RecordType, tuple[str, ...]]]
"""Values by host relative to the apex, and by type."""


def record(kind: RecordType, host: str, value: str, priority: str | None = None) -> Record:
    return Record(kind, host, value, 300, priority)


def view_of(
    zone: Zone,
    requested: list[Record],
    *,
    wildcards: Mapping[str, str] | None = None,
    cuts: Mapping[str, tuple[str, tuple[str, ...]]] | None = None,
    spf_texts: Mapping[str, str] | None = None,
    chains: Mapping[str, tuple[str, ...]] | None = None,
    addresses: Mapping[str, frozenset[str]] | None = None,
    certificate_hosts: tuple[str, ...] = (),
) -> ZoneView:
    hosts = {}
    for name, kinds in types_to_ask(requested, APEX, certificate_hosts).items():
        relative = name.removesuffix(APEX).removesuffix(".") or "@"
        has: dict[RecordType, tuple[str, ...]] = dict(zone.get(relative, {}))
        if name == APEX:
            has.setdefault("NS", NAME_SERVERS.values)
        answers = {kind: Answer(Outcome.RECORDS, has[kind]) if has.get(kind) else ABSENT for kind in kinds}
        cut, servers = (cuts or {}).get(relative, (None, ()))
        hosts[name] = HostView(name, answers, (wildcards or {}).get(relative), cut, servers)
    return ZoneView(
        APEX,
        NAME_SERVERS,
        NAME_SERVERS,
        ABSENT,
        hosts,
        {name: Answer(Outcome.RECORDS, (text,)) for name, text in (spf_texts or {}).items()},
        {name: Chain(names, Outcome.NO_DATA) for name, names in (chains or {}).items()},
        addresses or {},
    )


def conflicts_of(zone: Zone, *requested: Record, flattens_apex: bool = False, **kind: object) -> list[Conflict]:
    view = view_of(zone, list(requested), **kind)  # type: ignore[arg-type]
    return find_conflicts(requested, view, flattens_apex=flattens_apex)


def shown(found: list[Conflict]) -> list[tuple[str, str, str]]:
    return [(each.record.host, each.record.type, each.record.value) for each in found]


SAME_TYPE: list[tuple[RecordType, str, str]] = [
    ("A", "192.0.2.1", "192.0.2.2"),
    ("AAAA", "2001:db8::1", "2001:db8::2"),
    ("CNAME", "old.test", "new.test"),
    ("MX", "10 mail.test", "10 other.test"),
    ("TXT", "old", "new"),
    ("NS", "ns1.old.test", "ns1.new.test"),
    ("SRV", "10 5 5060 sip.test", "10 5 5061 sip.test"),
    ("PTR", "a.test", "b.test"),
    ("CAA", "0 issue old.test", '0 issue "new.test"'),
]


@pytest.mark.parametrize(("kind", "old", "new"), SAME_TYPE)
def test_same_host_and_type_with_another_value_conflicts(kind: RecordType, old: str, new: str) -> None:
    cuts = {"www": ("www.shop.test", (old,))} if kind == "NS" else {}
    found = conflicts_of({"www": {kind: (old,)}}, record(kind, "www", new), cuts=cuts)

    assert [(each.record.host, each.record.type) for each in found] == [("www", kind)]
    assert found[0].reason.endswith(".")


@pytest.mark.parametrize(("kind", "old", "new"), SAME_TYPE)
def test_identical_records_never_conflict(kind: RecordType, old: str, new: str) -> None:
    cuts = {"www": ("www.shop.test", (old,))} if kind == "NS" else {}

    assert conflicts_of({"www": {kind: (old,)}}, record(kind, "www", old), cuts=cuts) == []


def test_of_a_set_only_what_the_request_does_not_name_conflicts() -> None:
    zone: Zone = {"@": {"A": ("192.0.2.1", "192.0.2.2", "203.0.113.9")}}
    found = conflicts_of(zone, record("A", "@", "192.0.2.1"), record("A", "@", "192.0.2.2"))

    assert shown(found) == [("@", "A", "203.0.113.9")]


def test_texts_of_other_purposes_stand_beside_each_other() -> None:
    zone: Zone = {"@": {"TXT": ("v=spf1 -all", "google-site-verification=abc", "MS=ms1", "frontage-verify=old")}}
    found = conflicts_of(zone, record("TXT", "@", "frontage-verify=new"))

    assert shown(found) == [("@", "TXT", "frontage-verify=old")]


def test_a_requested_cname_conflicts_with_everything_at_its_host() -> None:
    zone: Zone = {"www": {"A": ("192.0.2.1",), "TXT": ("hello",), "MX": ("10 mail.test",)}}
    found = conflicts_of(zone, record("CNAME", "www", "target.test"))

    assert {each.rule for each in found} == {Rule.CNAME_BESIDE}
    assert sorted(each.record.type for each in found) == ["A", "MX", "TXT"]
    assert next(each.record for each in found if each.record.type == "MX").priority == "10"


def test_any_record_conflicts_with_an_existing_cname() -> None:
    found = conflicts_of(
        {"www": {"CNAME": ("old.test",)}}, record("TXT", "www", "hello"), record("A", "www", "192.0.2.1")
    )

    assert [(each.rule, each.record.value) for each in found] == [(Rule.EXISTING_CNAME, "old.test")]


def test_mail_servers_conflict_as_a_set_with_their_priorities() -> None:
    zone: Zone = {"@": {"MX": ("10 mail.test", "20 backup.test")}}

    assert conflicts_of(zone, record("MX", "@", "mail.test", "10"), record("MX", "@", "backup.test", "20")) == []
    found = conflicts_of(zone, record("MX", "@", "mail.test", "5"))
    assert [(each.rule, each.record.value, each.record.priority) for each in found] == [
        (Rule.OTHER_MAIL_SERVER, "mail.test", "10"),
        (Rule.OTHER_MAIL_SERVER, "backup.test", "20"),
    ]
    assert conflicts_of(zone, record("MX", "@", "mail.test"), record("MX", "@", "20 backup.test.")) == []


def test_a_cname_at_the_apex_conflicts_unless_the_provider_flattens_it() -> None:
    zone: Zone = {"@": {"A": ("192.0.2.1",), "MX": ("10 mail.test",)}}
    wanted = record("CNAME", "@", "target.test")

    assert {"A", "MX", "NS"} == {each.record.type for each in conflicts_of(zone, wanted)}
    assert shown(conflicts_of(zone, wanted, flattens_apex=True)) == [("@", "A", "192.0.2.1")]
    addresses = {"target.test": frozenset({"192.0.2.1"})}
    assert conflicts_of(zone, wanted, flattens_apex=True, addresses=addresses) == []


def test_records_of_a_wildcard_do_not_conflict_with_a_host_of_its_own() -> None:
    zone: Zone = {"www": {"A": ("192.0.2.9",)}, "*": {"A": ("192.0.2.9",)}}

    assert conflicts_of(zone, record("CNAME", "www", "target.test"), wildcards={"www": "*.shop.test"}) == []
    assert shown(conflicts_of(zone, record("A", "*", "192.0.2.1"))) == [("*", "A", "192.0.2.9")]


def test_a_zone_cut_above_a_host_conflicts_unless_that_zone_has_the_record() -> None:
    cuts = {"a.sub": ("sub.shop.test", ("ns.sub.test",))}
    wanted = record("A", "a.sub", "192.0.2.1")

    found = conflicts_of({}, wanted, cuts=cuts)
    assert [(each.rule, each.record.host, each.record.value) for each in found] == [
        (Rule.ZONE_CUT, "sub", "ns.sub.test")
    ]
    assert conflicts_of({"a.sub": {"A": ("192.0.2.1",)}}, wanted, cuts=cuts) == []


def test_a_requested_zone_cut_conflicts_with_what_it_hides() -> None:
    found = conflicts_of({"sub": {"A": ("192.0.2.1",)}}, record("NS", "sub", "ns1.new.test"))

    assert [(each.rule, each.record.type) for each in found] == [(Rule.ZONE_CUT, "A")]


def test_a_cname_that_leads_back_conflicts() -> None:
    found = conflicts_of(
        {}, record("CNAME", "www", "a.shop.test."), chains={"a.shop.test": ("b.shop.test", "www.shop.test")}
    )

    assert [(each.rule, each.record.host, each.record.value) for each in found] == [
        (Rule.CNAME_CIRCLE, "b", "www.shop.test")
    ]


@pytest.mark.parametrize(
    "requested",
    [
        (record("CNAME", "www", "a.test"), record("A", "www", "192.0.2.1")),
        (record("CNAME", "www", "a.test"), record("CNAME", "www", "b.test")),
        (record("CNAME", "www", "www.shop.test."),),
        (record("NS", "sub", "ns1.test"), record("A", "deep.sub", "192.0.2.1")),
    ],
)
def test_a_request_that_no_zone_can_hold_conflicts_with_itself(requested: tuple[Record, ...]) -> None:
    found = conflicts_of({}, *requested)

    assert {each.rule for each in found} == {Rule.REQUEST}


# SPF --------------------------------------------------------------------------------------------------------


def test_spf_suggests_the_merged_record() -> None:
    zone: Zone = {"@": {"TXT": ("v=spf1 include:_spf.google.test ip4:192.0.2.0/24 ~all",)}}
    wanted = record("TXT", "@", '"v=spf1 include:mail.ours.test -all"')
    found = conflicts_of(zone, wanted, spf_texts={"_spf.google.test": "v=spf1 a -all", "mail.ours.test": "v=spf1 -all"})

    assert [each.rule for each in found] == [Rule.SPF]
    assert found[0].suggested == "v=spf1 include:_spf.google.test ip4:192.0.2.0/24 include:mail.ours.test ~all"


def test_spf_that_needs_no_merging_does_not_conflict() -> None:
    zone: Zone = {"@": {"TXT": ("v=spf1 include:mail.ours.test ip4:192.0.2.1 ~all",)}}

    assert conflicts_of(zone, record("TXT", "@", "v=spf1 include:MAIL.ours.test -all")) == []


def test_spf_beyond_ten_look_ups_suggests_nothing() -> None:
    many = " ".join(f"a:a{number}.test" for number in range(10))
    zone: Zone = {"@": {"TXT": (f"v=spf1 {many} ~all",)}}
    found = conflicts_of(
        zone, record("TXT", "@", "v=spf1 include:mail.ours.test ~all"), spf_texts={"mail.ours.test": ""}
    )

    assert found[0].suggested is None
    assert "ten" in found[0].reason


def test_spf_with_an_included_record_that_could_not_be_asked_suggests_nothing() -> None:
    zone: Zone = {"@": {"TXT": ("v=spf1 include:lost.test ~all",)}}
    found = conflicts_of(zone, record("TXT", "@", "v=spf1 include:mail.ours.test ~all"))

    assert found[0].suggested is None
    assert "unknown" in found[0].reason


# CAA --------------------------------------------------------------------------------------------------------

OURS = CertificateNeeds(frozenset({"www.shop.test"}), ((("ca.test",), None),))


def caa_conflicts(zone: Zone, *requested: Record) -> list[Conflict]:
    view = view_of(zone, list(requested), certificate_hosts=("www.shop.test",))
    return find_conflicts(requested, view, certificates=OURS)


def test_caa_that_forbids_the_certificate_conflicts_and_suggests_ours() -> None:
    found = caa_conflicts({"@": {"CAA": ("0 issue other.test",)}}, record("CNAME", "www", "target.test"))

    assert [(each.rule, each.record.host, each.suggested) for each in found] == [(Rule.CAA, "@", '0 issue "ca.test"')]


@pytest.mark.parametrize(
    "values", [("0 issue ca.test",), ("0 issue other.test", "0 issue ca.test"), ("0 iodef x",), ()]
)
def test_caa_that_allows_the_certificate_does_not_conflict(values: tuple[str, ...]) -> None:
    assert caa_conflicts({"@": {"CAA": values}}, record("CNAME", "www", "target.test")) == []


def test_caa_that_the_request_adds_allows_the_certificate() -> None:
    zone: Zone = {"www": {"CAA": ("0 issue other.test",)}}
    wanted = record("A", "www", "192.0.2.1"), record("CAA", "www", '0 issue "ca.test"')

    assert [each.rule for each in caa_conflicts(zone, *wanted)] == [Rule.OTHER_VALUE]


def test_every_name_up_to_the_apex_is_concerned() -> None:
    wanted = record("A", "a.b", "192.0.2.1")

    assert hosts_concerned([wanted], APEX) == ["a.b.shop.test", "b.shop.test", "shop.test"]
    assert owner_name(wanted, APEX) == "a.b.shop.test"


# For any zone -------------------------------------------------------------------------------------------------

_VALUES: dict[RecordType, list[str]] = {
    "A": ["192.0.2.1", "192.0.2.2"],
    "AAAA": ["2001:db8::1", "2001:db8::2"],
    "MX": ["10 a.test", "20 b.test", "20 a.test"],
    "TXT": ["hello", "key=1", "key=2", "v=spf1 a ~all", "v=spf1 ip4:192.0.2.1 -all"],
    "SRV": ["1 1 1 a.test", "1 1 2 a.test"],
    "CAA": ["0 issue a.test", "0 iodef mailto:a@b.test"],
}
record_sets = st.fixed_dictionaries(
    {}, optional={kind: st.sets(st.sampled_from(values), min_size=1) for kind, values in _VALUES.items()}
)
zones = st.dictionaries(
    st.sampled_from(["@", "www", "a.www"]),
    st.one_of(record_sets, st.just({"CNAME": {"target.test"}}), st.just({"CNAME": {"other.test"}})),
)


def _records_of(zone: Mapping[str, Mapping[RecordType, set[str]]]) -> list[Record]:
    return [
        record(kind, host, value) for host, kinds in zone.items() for kind, values in kinds.items() for value in values
    ]


@given(zones)
def test_what_a_zone_has_already_never_conflicts(zone: Mapping[str, Mapping[RecordType, set[str]]]) -> None:
    zone = {host: kinds for host, kinds in zone.items() if host != "@" or "CNAME" not in kinds}
    spf_count = [sum(value.startswith("v=spf1") for value in kinds.get("TXT", ())) for kinds in zone.values()]
    assume(all(count <= 1 for count in spf_count))
    existing: Zone = {host: {kind: tuple(values) for kind, values in kinds.items()} for host, kinds in zone.items()}

    assert conflicts_of(existing, *_records_of(zone)) == []


@given(zones, zones)
def test_a_conflict_names_a_record_that_is_there_and_not_requested(
    zone: Mapping[str, Mapping[RecordType, set[str]]], wanted: Mapping[str, Mapping[RecordType, set[str]]]
) -> None:
    existing: Zone = {host: {kind: tuple(values) for kind, values in kinds.items()} for host, kinds in zone.items()}
    requested = _records_of(wanted)

    found = conflicts_of(existing, *requested)

    there = {identity(each) for each in _records_of(zone)} | {
        identity(record("NS", "@", server)) for server in NAME_SERVERS.values
    }
    for each in found:
        if each.rule is not Rule.REQUEST:
            assert identity(each.record) in there
            assert identity(each.record) not in {identity(asked) for asked in requested}
    assert len({(identity(each.record)) for each in found}) == len(found)
