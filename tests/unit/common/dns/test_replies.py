"""Reading the replies of a zone's own server: what "there is nothing" needs to count."""

from __future__ import annotations

import dns.flags
import dns.message
import dns.rrset
import pytest

from common.dns import Answer, Outcome
from common.dns.replies import ServerReply, read_authoritative
from common.records import RecordType

NAME = "www.shop.example"
SOA = "shop.example. 60 IN SOA ns.shop.example. hostmaster.shop.example. 1 3600 600 86400 60"
UNKNOWN = Answer(Outcome.SERVER_FAILURE)


def reply(
    *answer: str, rcode: str = "NOERROR", authority: tuple[str, ...] = (), kind: RecordType = "A", flags: str = "AA"
) -> ServerReply:
    """Records as in a zone file."""
    message = dns.message.make_response(dns.message.make_query(NAME, kind, flags=0))
    message.flags |= dns.flags.from_text(flags)
    message.set_rcode(dns.rcode.from_text(rcode))
    message.answer.extend(map(rrset, answer))
    message.authority.extend(map(rrset, authority))
    return read_authoritative(message, NAME, kind)


def rrset(line: str) -> dns.rrset.RRset:
    name, ttl, kind_class, kind, rest = line.split(None, 4)
    return dns.rrset.from_text(name, int(ttl), kind_class, kind, rest)


@pytest.mark.parametrize(("rcode", "outcome"), [("NXDOMAIN", Outcome.NO_NAME), ("NOERROR", Outcome.NO_DATA)])
def test_that_there_is_nothing_counts_with_the_soa_of_its_zone(rcode: str, outcome: Outcome) -> None:
    """As knot, NSD, BIND, PowerDNS, Route 53 and Cloudflare answer: RFC 2308 §2.1 type 2 and 1, §2.2 type 2 and 1."""
    name_server = "shop.example. 60 IN NS ns.shop.example."
    assert reply(rcode=rcode, authority=(SOA,)) == ServerReply(Answer(outcome))
    assert reply(rcode=rcode, authority=(name_server, SOA)) == ServerReply(Answer(outcome))
    assert reply(rcode=rcode, authority=(SOA.upper(),)) == ServerReply(Answer(outcome))


@pytest.mark.parametrize("rcode", ["NXDOMAIN", "NOERROR"])
@pytest.mark.parametrize(
    "authority",
    [
        (),
        ("shop.example. 60 IN NS ns.shop.example.",),
        (SOA.replace("shop.example. 60", "other.example. 60"),),
        (SOA.replace("shop.example. 60", "below.www.shop.example. 60"),),
    ],
)
def test_that_there_is_nothing_does_not_count_without(rcode: str, authority: tuple[str, ...]) -> None:
    assert reply(rcode=rcode, authority=authority).answer == UNKNOWN


def test_without_authority_the_soa_makes_it_no_better() -> None:
    assert reply(rcode="NXDOMAIN", authority=(SOA,), flags="RD").answer == UNKNOWN


def test_what_is_there_needs_no_soa() -> None:
    assert reply(f"{NAME}. 60 IN A 192.0.2.1").answer == Answer(Outcome.RECORDS, ("192.0.2.1",))
    assert reply(f"{NAME.upper()}. 60 IN A 192.0.2.1").answer == Answer(Outcome.RECORDS, ("192.0.2.1",))


@pytest.mark.parametrize("rcode", ["NXDOMAIN", "NOERROR"])
def test_an_alias_has_nothing_beside_it_wherever_it_leads(rcode: str) -> None:
    assert reply(f"{NAME}. 60 IN CNAME gone.other.example.", rcode=rcode).answer == Answer(Outcome.NO_DATA)


def test_records_of_other_names_are_nobodys_answer() -> None:
    assert reply("evil.example. 60 IN A 192.0.2.1", f"evil.example. 60 IN CNAME {NAME}.").answer == UNKNOWN


def test_a_referral_is_no_answer() -> None:
    referred = reply(authority=("shop.example. 60 IN NS ns1.host.example.",), flags="RD")
    assert referred.answer == UNKNOWN
    assert referred.referral is not None
    assert referred.referral.zone == "shop.example"
