"""The delegated zone's answers, read by dnspython, which knows nothing of how they were written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.update
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edge.dns.messages import Malformed, Question, Unanswerable, read_question
from edge.dns.responder import BURST, PER_SECOND, DnsCounters, Responder
from edge.dns.zone import Unknown, Zone

ZONE = "acme.frontage.example"
LABEL = "abcdefghijklmnopqrstuvwxyz"
RUNNING = {LABEL: ["gfj9Xq-Rg85nM", "LHDhK3oGRvkiefQnx7OOczTY5Tic_xZ6HcMOc_gmtoM"]}


def make_responder(values: Mapping[str, Sequence[str]] = RUNNING, name: str = ZONE) -> Responder:
    return Responder(Zone(name, "power.frontage.example", lambda label: values.get(label, ())), DnsCounters())


def ask(
    name: str, kind: str = "TXT", *, responder: Responder | None = None, over_tcp: bool = False, **options: object
) -> dns.message.Message:
    query = dns.message.make_query(name, kind, **options)  # type: ignore[arg-type]
    response = (responder or make_responder()).respond(query.to_wire(), "192.0.2.1", 0.0, over_tcp=over_tcp)
    assert response is not None
    message = dns.message.from_wire(response)
    assert query.is_response(message)
    assert not message.flags & dns.flags.RA
    return message


def texts(message: dns.message.Message) -> list[str]:
    return [record.to_text().strip('"') for found in message.answer for record in found]


def test_label_of_a_running_order_has_its_values_as_txt_records() -> None:
    message = ask(f"{LABEL}.{ZONE}")
    assert message.rcode() == dns.rcode.NOERROR
    assert message.flags & dns.flags.AA
    assert sorted(texts(message)) == sorted(RUNNING[LABEL])


def test_names_are_found_in_any_case_and_repeated_as_they_came() -> None:
    name = f"{LABEL}.{ZONE}".swapcase()
    message = ask(name)
    assert len(texts(message)) == 2
    assert message.question[0].name.to_text(omit_final_dot=True) == name


def test_zone_name_has_soa_and_ns() -> None:
    (soa,) = ask(ZONE, "SOA").answer[0]
    assert (soa.mname.to_text(), soa.rname.to_text()) == ("power.frontage.example.", f"hostmaster.{ZONE}.")
    assert soa.minimum == 0
    (server,) = ask(ZONE, "NS").answer[0]
    assert server.target.to_text() == "power.frontage.example."


@pytest.mark.parametrize(
    ("name", "kind"), [(ZONE, "A"), (ZONE, "TXT"), (f"{LABEL}.{ZONE}", "A"), (f"{LABEL}.{ZONE}", "CAA")]
)
def test_kind_that_a_name_has_not_is_no_data(name: str, kind: str) -> None:
    message = ask(name, kind)
    assert (message.rcode(), message.answer) == (dns.rcode.NOERROR, [])
    assert message.authority[0].rdtype == dns.rdatatype.SOA


@pytest.mark.parametrize("name", [f"other.{ZONE}", f"a.{LABEL}.{ZONE}", f"\\255.{ZONE}"])
def test_other_names_in_the_zone_do_not_exist(name: str) -> None:
    message = ask(name)
    assert (message.rcode(), message.answer) == (dns.rcode.NXDOMAIN, [])
    assert message.authority[0].name.to_text() == f"{ZONE}."


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("example.com", "A"),
        ("frontage.example", "SOA"),
        (".", "NS"),
        (f"evil{ZONE}", "TXT"),
        (ZONE, "AXFR"),
        (ZONE, "IXFR"),
    ],
)
def test_what_is_not_the_zones_is_refused(name: str, kind: str) -> None:
    message = ask(name, kind)
    assert message.rcode() == dns.rcode.REFUSED
    assert not message.flags & dns.flags.AA
    assert not message.answer


def test_other_classes_are_refused() -> None:
    assert ask(f"{LABEL}.{ZONE}", rdclass="CH").rcode() == dns.rcode.REFUSED


def test_what_this_edge_may_not_know_is_a_failure_and_never_absent() -> None:
    def unknown(label: str) -> Sequence[str]:
        raise Unknown("cut off")

    responder = Responder(Zone(ZONE, "power.frontage.example", unknown), DnsCounters())
    assert ask(f"{LABEL}.{ZONE}", responder=responder).rcode() == dns.rcode.SERVFAIL


def test_edns_is_answered_in_its_version() -> None:
    message = ask(f"{LABEL}.{ZONE}", use_edns=0, payload=4096, want_dnssec=True)
    assert (message.edns, message.payload) == (0, 512)
    assert message.ednsflags & dns.flags.DO
    assert len(texts(message)) == 2
    assert ask(f"{LABEL}.{ZONE}", use_edns=1).rcode() == dns.rcode.BADVERS


def test_options_of_edns_are_passed_over() -> None:
    cookie = dns.edns.GenericOption(dns.edns.OptionType.COOKIE, b"12345678")
    assert len(texts(ask(f"{LABEL}.{ZONE}", use_edns=0, options=[cookie], pad=128))) == 2


def test_udp_answer_beyond_512_bytes_is_truncated_and_whole_over_tcp() -> None:
    responder = make_responder({LABEL: ["x" * 255, "y" * 255]})
    over_udp = ask(f"{LABEL}.{ZONE}", responder=responder, use_edns=0, payload=4096)
    assert over_udp.flags & dns.flags.TC
    assert not over_udp.answer
    assert len(texts(ask(f"{LABEL}.{ZONE}", responder=responder, over_tcp=True))) == 2


@pytest.mark.parametrize("opcode", [dns.opcode.NOTIFY, dns.opcode.STATUS, dns.opcode.UPDATE])
def test_other_operations_are_not_implemented(opcode: dns.opcode.Opcode) -> None:
    query = dns.message.make_query(ZONE, "SOA")
    query.set_opcode(opcode)
    response = make_responder().respond(query.to_wire(), "192.0.2.1", 0.0)
    assert response is not None
    assert len(response) == 12
    assert response[3] & 0xF == dns.rcode.NOTIMP


WELL_FORMED = dns.message.make_query(f"{LABEL}.{ZONE}", "TXT", id=7).to_wire()


@pytest.mark.parametrize(
    "message",
    [
        WELL_FORMED[:-1],
        WELL_FORMED + b"\0",
        WELL_FORMED[:5] + b"\0" + WELL_FORMED[6:],  # no question
        WELL_FORMED[:5] + b"\2" + WELL_FORMED[6:],  # two
        WELL_FORMED[:6] + b"\xff\xff" + WELL_FORMED[8:],  # 65,535 answers
        WELL_FORMED[:8] + b"\xff\xff" + WELL_FORMED[10:],
        WELL_FORMED[:10] + b"\xff\xff" + WELL_FORMED[12:],
        WELL_FORMED[:10] + b"\0\1" + WELL_FORMED[12:],  # an OPT record that is not there
        WELL_FORMED[:12] + b"\xc0\x0c" + WELL_FORMED[-4:],  # a name that points to itself
        WELL_FORMED[:12] + b"\x3f" * 500,
        dns.message.make_query(ZONE, "TXT", use_edns=0, pad=512, id=7).to_wire() + b"\0",
    ],
)
def test_malformed_message_is_answered_by_a_bare_header(message: bytes) -> None:
    response = make_responder().respond(message, "192.0.2.1", 0.0)
    assert response is not None
    assert (len(response), response[:2], response[3] & 0xF) == (12, message[:2], dns.rcode.FORMERR)


@pytest.mark.parametrize("message", [b"", WELL_FORMED[:11], WELL_FORMED[:2] + b"\x80" + WELL_FORMED[3:]])
def test_responses_and_fragments_are_not_answered(message: bytes) -> None:
    assert make_responder().respond(message, "192.0.2.1", 0.0) is None


def test_client_over_its_rate_is_led_to_tcp_by_half_and_dropped_else() -> None:
    counters = DnsCounters()
    responder = Responder(Zone(ZONE, "power.frontage.example", lambda label: RUNNING.get(label, ())), counters)
    for _ in range(int(BURST)):
        assert responder.respond(WELL_FORMED, "192.0.2.1", 0.0)
    responses = [responder.respond(WELL_FORMED, "192.0.2.1", 0.0) for _ in range(10)]
    sent = [dns.message.from_wire(each) for each in responses if each is not None]
    assert len(sent) == 5
    assert all(each.flags & dns.flags.TC and not each.answer for each in sent)
    assert all(len(each) <= len(WELL_FORMED) for each in responses if each is not None)
    assert responder.respond(WELL_FORMED, "192.0.2.1", 0.0, over_tcp=True) is None
    other = responder.respond(WELL_FORMED, "192.0.2.2", 0.0)
    assert other is not None
    assert texts(dns.message.from_wire(other))
    later = responder.respond(WELL_FORMED, "192.0.2.1", 2 / PER_SECOND)
    assert later is not None
    assert texts(dns.message.from_wire(later))
    (family,) = counters.families()
    assert family.samples == {("answered",): [BURST + 2], ("limited",): [11.0]}


@given(st.binary(max_size=600))
def test_no_bytes_break_it_nor_get_more_than_512(message: bytes) -> None:
    response = make_responder().respond(message, "192.0.2.1", 0.0)
    if response is not None:
        assert len(response) <= 512
        assert response[:2] == message[:2]
        dns.message.from_wire(response)


@given(st.data())
@example(None)
def test_a_question_changed_anywhere_is_read_as_dnspython_reads_it_or_refused(data: st.DataObject | None) -> None:
    message = bytearray(dns.message.make_query(f"{LABEL}.{ZONE}", "TXT", use_edns=0, payload=1232).to_wire())
    if data is not None:
        for _ in range(data.draw(st.integers(1, 4))):
            message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    try:
        question = read_question(bytes(message))
    except (Unanswerable, Malformed):
        return
    assert (question.labels, question.kind, question.of_class) == _by_dnspython(bytes(message))


def _by_dnspython(message: bytes) -> tuple[tuple[bytes, ...], int, int]:
    name, used = dns.name.from_wire(message, 12)
    kind, of_class = (int.from_bytes(message[12 + used + at : 14 + used + at], "big") for at in (0, 2))
    return tuple(label.lower() for label in name.labels[:-1]), kind, of_class


def test_longest_names_are_read() -> None:
    name = ".".join(["a" * 63] * 3 + ["b" * 61])
    question = read_question(dns.message.make_query(name, "A").to_wire())
    assert isinstance(question, Question)
    assert len(question.labels) == 4
    too_long = WELL_FORMED[:12] + (b"\x3f" + b"a" * 63) * 3 + b"\x3e" + b"b" * 62 + b"\0\0\1\0\1"
    with pytest.raises(Malformed):
        read_question(too_long)
