"""Plans: what is written, what the digest holds, and what undo does."""

from __future__ import annotations

from dataclasses import replace

from common.connect.plan import is_changed_since, journal_of, make_plan, plan_undo, settle_journal, settle_undo
from common.dns.questions import Answer, Outcome
from common.domain_check.conflicts import find_conflicts
from common.domain_check.zone_view import HostView, ZoneView
from common.flows.plan import Change, JournalEntry, Plan
from common.flows.requested import RecordPurpose, Requested
from common.records import Record, RecordType

APEX = "customer.example"
EMPTY = Answer(Outcome.NO_DATA)
TYPES: tuple[RecordType, ...] = ("A", "AAAA", "CNAME", "MX", "TXT", "NS", "SRV", "CAA", "PTR")


def view(**hosts: dict[RecordType, tuple[str, ...]]) -> ZoneView:
    """Hosts by their labels, ``root`` for the apex."""
    views = {}
    for label, values in hosts.items():
        name = APEX if label == "root" else f"{label}.{APEX}"
        answers = dict.fromkeys(TYPES, EMPTY) | {
            kind: Answer(Outcome.RECORDS, of_kind, ttl_seconds=60) for kind, of_kind in values.items()
        }
        views[name] = HostView(name, answers)
    return ZoneView(APEX, EMPTY, EMPTY, EMPTY, views)


def with_wildcard(zone: ZoneView, *names: str) -> ZoneView:
    """The zone in which these names are answered by its wildcard."""
    answered = {name: replace(host, wildcard=f"*.{APEX}") for name, host in zone.hosts.items() if name in names}
    return replace(zone, hosts={**zone.hosts, **answered})


def plan(zone: ZoneView, *requested: Requested) -> Plan:
    return make_plan(requested, zone, find_conflicts([each.record for each in requested], zone))


def record(kind: RecordType, host: str, value: str, *, is_routed: bool = False) -> Requested:
    return Requested(Record(kind, host, value, 300), RecordPurpose("power") if is_routed else RecordPurpose())


def shown(of: Plan) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    return sorted((each.action, each.type, each.before, each.after) for each in of.changes)


def test_a_cname_takes_the_place_of_all_else() -> None:
    zone = view(shop={"A": ("192.0.2.1",), "TXT": ("x",)})
    assert shown(plan(zone, record("CNAME", "shop", "t.example."))) == [
        ("add", "CNAME", (), ("t.example",)),
        ("remove", "A", ("192.0.2.1",), ()),
        ("remove", "TXT", ("x",), ()),
    ]


def test_what_is_there_is_kept_and_the_plan_is_empty() -> None:
    same = plan(view(shop={"CNAME": ("t.example",)}), record("CNAME", "shop", "T.example."))
    assert shown(same) == [("keep", "CNAME", ("t.example",), ("t.example",))]
    assert not same.to_write


def test_what_a_wildcard_cname_answers_as_requested_is_kept() -> None:
    zone = with_wildcard(view(shop={"CNAME": ("t.example",)}), f"shop.{APEX}")
    same = plan(zone, record("CNAME", "shop", "t.example."), record("TXT", "@", "verify=2"))
    assert [each.action for each in same.changes] == ["keep", "add"]
    other = plan(zone, record("CNAME", "shop", "u.example."))
    assert shown(other) == [("add", "CNAME", (), ("u.example",))], "a record of its own hides the wildcard's"


def test_a_record_at_or_beneath_a_name_ends_the_answers_of_its_wildcard() -> None:
    """RFC 4592 §2.2.2: the name exists then, if only as a part of another."""
    led: dict[RecordType, tuple[str, ...]] = {"CNAME": ("t.example",)}
    zone = with_wildcard(view(shop=led, **{"mail.shop": led}), f"shop.{APEX}", f"mail.shop.{APEX}")
    shop, mail = record("CNAME", "shop", "t.example."), record("CNAME", "mail.shop", "t.example.")
    assert not plan(zone, shop, mail).to_write
    written = plan(zone, shop, record("CNAME", "mail.shop", "u.example."))
    assert [(each.host, each.action) for each in written.changes] == [("shop", "add"), ("mail.shop", "add")]
    beside = plan(zone, shop, record("TXT", "_verify.shop", "x"))
    assert [(each.host, each.action) for each in beside.changes] == [("shop", "add"), ("_verify.shop", "add")]


def test_texts_of_other_purposes_stay() -> None:
    zone = view(root={"TXT": ("other=1",)})
    assert shown(plan(zone, record("TXT", "@", "verify=2"))) == [("add", "TXT", ("other=1",), ("other=1", "verify=2"))]


def test_spf_is_merged() -> None:
    zone = view(root={"TXT": ("v=spf1 ip4:192.0.2.1 -all", "x")})
    assert shown(plan(zone, record("TXT", "@", "v=spf1 ip4:192.0.2.2 ~all"))) == [
        ("merge", "TXT", ("v=spf1 ip4:192.0.2.1 -all", "x"), ("v=spf1 ip4:192.0.2.1 ip4:192.0.2.2 -all", "x"))
    ]


def test_addresses_of_the_other_family_go_where_the_name_leads_to_us() -> None:
    zone = view(root={"AAAA": ("2001:db8::9",)})
    root = record("A", "@", "192.0.2.1", is_routed=True)
    assert shown(plan(zone, root)) == [("add", "A", (), ("192.0.2.1",)), ("remove", "AAAA", ("2001:db8::9",), ())]
    assert shown(plan(zone, record("A", "@", "192.0.2.1"))) == [("add", "A", (), ("192.0.2.1",))]


def test_the_digest_moves_with_the_zone_and_with_the_request() -> None:
    wanted = record("CNAME", "shop", "t.example.")
    empty, taken = view(shop={}), view(shop={"A": ("192.0.2.1",)})
    assert plan(empty, wanted).digest == plan(empty, wanted).digest
    assert len({plan(empty, wanted).digest, plan(taken, wanted).digest}) == 2
    assert plan(empty, wanted).digest != plan(empty, record("CNAME", "shop", "u.example.")).digest
    assert Plan.from_json(plan(taken, wanted).as_json()) == plan(taken, wanted)


CHANGE = Change("replace", f"shop.{APEX}", "shop", "A", ("192.0.2.1",), ("192.0.2.2",), 300, 60, "")


def test_the_journal_believes_the_zone() -> None:
    journal = journal_of(Plan((CHANGE,)), ())
    for there, status in (
        ({"192.0.2.1"}, "not_written"),
        ({"192.0.2.2"}, "written"),
        ({"192.0.2.1", "192.0.2.2"}, "partly_written"),
        (set(), "partly_written"),
    ):
        assert [each.status for each in settle_journal(journal, {CHANGE.key: frozenset(there)})] == [status]
    assert [each.status for each in settle_journal(journal, {})] == ["writing"], "what could not be read stays open"


def test_what_was_there_before_the_first_write_is_remembered() -> None:
    again = Change("replace", CHANGE.name, "shop", "A", ("192.0.2.2",), ("192.0.2.3",), 300, 300, "")
    (entry,) = journal_of(Plan((again,)), (JournalEntry(CHANGE, "written"),))
    assert (entry.change.before, entry.change.before_ttl, entry.change.after) == (("192.0.2.1",), 60, ("192.0.2.3",))


def test_undo_puts_back_what_was_there_and_leaves_what_others_added() -> None:
    written = JournalEntry(CHANGE, "written")
    now = {CHANGE.key: frozenset({"192.0.2.2", "192.0.2.9"})}
    assert is_changed_since(written, now)
    (change,) = plan_undo([written], now).changes
    assert (change.after, change.ttl) == (("192.0.2.1", "192.0.2.9"), 60)
    back = {CHANGE.key: frozenset(change.after)}
    assert [each.status for each in settle_undo([written], back)] == ["taken_back"]
