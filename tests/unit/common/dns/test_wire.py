"""Our own reading of replies, beside dnspython's: it reads the same, or leaves the reply to dnspython."""

from __future__ import annotations

from random import Random

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset
import pytest

from common.dns.questions import Outcome
from common.dns.replies import read_authoritative
from common.dns.wire import encode_query, is_reply, is_truncated, lacks_edns, read_reply
from common.records import RecordType

NAME = "www.shop.example"
LONG = "x" * 250
READ: list[tuple[RecordType, list[str]]] = [
    ("A", ["192.0.2.1", "192.0.2.255"]),
    ("AAAA", ["2001:db8::1", "::"]),
    ("CNAME", ["Target.Shop.example."]),
    ("NS", ["ns.shop.example.", "ns.other.example."]),
    ("PTR", ["host.shop.example."]),
    ("MX", ["10 mx.shop.example.", "20 mx.other.example."]),
    ("SOA", ["ns.Shop.example. hostmaster.shop.example. 1 3600 600 86400 60"]),
    ("TXT", [f'"{LONG}" "{LONG}"', '"v=spf1 -all"', r'"quo\"te \200"']),
]
LEFT: list[tuple[RecordType, list[str]]] = [
    ("SRV", ["1 2 443 target.example."]),
    ("CAA", ['0 issue "ca.example"']),
    ("SOA", [r"ns.shop.example. host\.master.shop.example. 1 3600 600 86400 60"]),
    ("MX", ["0 ."]),
    ("CNAME", [r"a\.b.example."]),
]


def query_of(kind: RecordType) -> bytes:
    return encode_query(NAME, kind, 4711, recursion=False, edns=True)


def reply_to(query: bytes, kind: RecordType, values: list[str], *, owner: str = NAME) -> dns.message.Message:
    response = dns.message.make_response(dns.message.from_wire(query))
    response.flags |= dns.flags.AA
    response.answer.append(dns.rrset.from_text(f"{owner}.", 300, "IN", kind, *values))
    response.authority.append(dns.rrset.from_text("shop.example.", 300, "IN", "NS", "ns.shop.example."))
    response.additional.append(dns.rrset.from_text("ns.shop.example.", 300, "IN", "A", "192.0.2.53"))
    return response


@pytest.mark.parametrize("edns", [True, False])
@pytest.mark.parametrize("name", [NAME, "_dmarc.shop.example.", r"a\.b.example", r"nul\000l.example", "*.shop.example"])
def test_a_query_is_as_dnspython_writes_it(name: str, edns: bool) -> None:
    ours = encode_query(name, "TXT", 4711, recursion=True, edns=edns)
    theirs = dns.message.make_query(name, "TXT", id=4711, use_edns=0 if edns else False, payload=1232)
    assert ours == theirs.to_wire()


@pytest.mark.parametrize("name", ["a..example", f"{'x' * 64}.example", ".".join(["x" * 60] * 5)])
def test_a_name_that_no_zone_can_have_is_refused(name: str) -> None:
    with pytest.raises(dns.exception.DNSException):
        encode_query(name, "A", 1, recursion=False, edns=True)


@pytest.mark.parametrize(("kind", "values"), READ)
def test_records_are_read_as_dnspython_reads_them(kind: RecordType, values: list[str]) -> None:
    query = query_of(kind)
    message = reply_to(query, kind, values).to_wire()
    answer = read_reply(message, query, kind)
    expected = read_authoritative(dns.message.from_wire(message), NAME, kind).answer
    assert answer == expected
    assert answer is not None
    assert answer.ttl_seconds == expected.ttl_seconds == 300


@pytest.mark.parametrize(("kind", "values"), LEFT)
def test_uncommon_records_are_left_to_dnspython(kind: RecordType, values: list[str]) -> None:
    query = query_of(kind)
    assert read_reply(reply_to(query, kind, values).to_wire(), query, kind) is None


def test_only_a_whole_authoritative_answer_about_the_name_itself_is_read() -> None:
    query = query_of("A")
    good = reply_to(query, "A", ["192.0.2.1"])
    assert read_reply(good.to_wire(), query, "A")
    assert read_reply(good.to_wire() + b"\0", query, "A") is None
    for flags, rcode in ((0, 0), (dns.flags.AA | dns.flags.TC, 0), (dns.flags.AA, 2), (dns.flags.AA, 3)):
        bad = reply_to(query, "A", ["192.0.2.1"])
        bad.flags = dns.flags.QR | flags
        bad.set_rcode(dns.rcode.Rcode(rcode))
        assert read_reply(bad.to_wire(), query, "A") is None
    other_name = reply_to(query, "A", ["192.0.2.1"], owner="evil.example")
    assert read_reply(other_name.to_wire(), query, "A") is None
    extended_error = reply_to(query, "A", ["192.0.2.1"])
    extended_error.set_rcode(dns.rcode.BADVERS)
    assert read_reply(extended_error.to_wire(), query, "A") is None


def rrset(owner: str, kind: str, value: str) -> dns.rrset.RRset:
    return dns.rrset.from_text(owner, 300, "IN", kind, value)


def without_records(query: bytes, *, soa_of: str = "shop.example.", rcode: int = 0) -> dns.message.Message:
    response = dns.message.make_response(dns.message.from_wire(query))
    response.flags |= dns.flags.AA
    response.set_rcode(dns.rcode.Rcode(rcode))
    response.authority.append(rrset(soa_of, "SOA", "ns.shop.example. hostmaster.shop.example. 1 3600 600 86400 60"))
    return response


def alias_of(query: bytes) -> dns.message.Message:
    """With where it leads, as a server does that has both zones, and the code of that name (RFC 6604 §3)."""
    response = without_records(query, soa_of="real.example.", rcode=dns.rcode.NXDOMAIN)
    response.answer += [rrset(f"{NAME}.", "CNAME", "www.real.example."), rrset("www.real.example.", "A", "192.0.2.1")]
    return response


def delegation(query: bytes) -> dns.message.Message:
    response = dns.message.make_response(dns.message.from_wire(query))
    response.authority.append(dns.rrset.from_text(f"{NAME}.", 300, "IN", "NS", f"ns1.{NAME}.", "ns.other.example."))
    response.additional.append(rrset(f"ns1.{NAME}.", "A", "192.0.2.53"))
    return response


@pytest.mark.parametrize(
    ("kind", "message", "outcome"),
    [
        ("A", without_records(query_of("A")), Outcome.NO_DATA),
        ("TXT", without_records(query_of("TXT"), soa_of=f"{NAME}.", rcode=dns.rcode.NXDOMAIN), Outcome.NO_NAME),
        ("A", alias_of(query_of("A")), Outcome.NO_DATA),
        ("NS", delegation(query_of("NS")), Outcome.RECORDS),
    ],
    ids=["no data", "no name", "alias", "delegation"],
)
def test_absence_and_delegations_are_read_as_dnspython_reads_them(
    kind: RecordType, message: dns.message.Message, outcome: Outcome
) -> None:
    whole = message.to_wire()
    assert dns.message.from_wire(whole)
    answer, theirs = (
        read_reply(whole, query_of(kind), kind),
        read_authoritative(dns.message.from_wire(whole), NAME, kind),
    )
    assert answer == theirs.answer
    assert answer is not None
    assert answer.outcome is outcome
    is_alias = any(each.rdtype == dns.rdatatype.CNAME for each in message.answer)
    assert answer.aliases == theirs.answer.aliases == (("www.real.example",) if is_alias else ())


def test_an_alias_with_other_records_beside_it_is_left_to_dnspython() -> None:
    query = query_of("A")
    message = reply_to(query, "A", ["192.0.2.1"])
    message.answer.insert(0, rrset(f"{NAME}.", "CNAME", "www.real.example."))
    assert read_reply(message.to_wire(), query, "A") is None
    answer = read_authoritative(dns.message.from_wire(message.to_wire()), NAME, "A").answer
    assert (answer.values, answer.aliases) == (("192.0.2.1",), ("www.real.example",))


@pytest.mark.parametrize("soa_of", ["other.example.", "hop.example.", f"below.{NAME}.", "."])
def test_absence_without_the_soa_of_a_zone_of_the_name_is_left_to_dnspython(soa_of: str) -> None:
    query = query_of("A")
    assert read_reply(without_records(query, soa_of=soa_of).to_wire(), query, "A") is None


def test_absence_without_authority_or_with_an_error_is_left_to_dnspython() -> None:
    query = query_of("A")
    for flags, rcode in ((0, 0), (dns.flags.AA | dns.flags.TC, 0), (dns.flags.AA, 2), (dns.flags.AA, 5)):
        bad = without_records(query, rcode=rcode)
        bad.flags = dns.flags.QR | flags | rcode
        assert read_reply(bad.to_wire(), query, "A") is None
    assert read_reply(delegation(query).to_wire(), query, "A") is None, "a referral is no answer about addresses"


def test_damaged_replies_are_read_as_dnspython_reads_them_or_not_at_all() -> None:
    random = Random(7)
    wholes = [(kind, reply_to(query_of(kind), kind, values).to_wire()) for kind, values in READ]
    wholes += [("A", without_records(query_of("A"), rcode=rcode).to_wire()) for rcode in (0, dns.rcode.NXDOMAIN)]
    wholes += [("A", alias_of(query_of("A")).to_wire()), ("NS", delegation(query_of("NS")).to_wire())]
    for kind, whole in wholes:
        query = query_of(kind)
        for _ in range(400):
            damaged = bytearray(whole)
            for _ in range(random.randint(1, 3)):
                damaged[random.randrange(12, len(damaged))] = random.choice((random.randrange(256), 0xC0, 0, 12))
            message = bytes(damaged[: random.choice((len(damaged), random.randrange(12, len(damaged))))])
            ours = read_reply(message, query, kind) if is_reply(message, query) else None
            try:
                theirs = dns.message.from_wire(message)
            except dns.exception.DNSException:
                continue
            if ours is not None:
                read = read_authoritative(theirs, NAME, kind).answer
                assert (ours.outcome, set(ours.values)) == (read.outcome, set(read.values))


def test_a_reply_has_the_id_and_the_question_of_its_query() -> None:
    query = query_of("A")
    reply = reply_to(query, "A", ["192.0.2.1"]).to_wire()
    assert is_reply(reply, query)
    assert is_reply(reply.replace(b"\3www\4shop", b"\3wWw\4SHOP"), query)
    assert not is_reply(query, query)
    assert not is_reply(b"\0\0" + reply[2:], query)
    assert not is_reply(reply.replace(b"\3www", b"\3wwx"), query)
    assert not is_reply(reply[:11], query)
    assert not is_reply(reply, query_of("AAAA"))
    assert not is_truncated(reply)


def test_a_refusal_may_leave_the_question_out_and_an_answer_may_not() -> None:
    query = query_of("A")
    refusal, empty = query[:2] + b"\x80\x01" + bytes(8), query[:2] + b"\x84\x00" + bytes(8)
    assert is_reply(refusal, query)
    assert lacks_edns(refusal)
    assert not is_reply(empty, query)
    assert read_reply(empty, query, "A") is None
