"""RFC 2136 updates of the lab's zone, signed by one TSIG key (RFC 8945). No sockets.

An update is taken whole or not at all: its prerequisites first, then its changes in their order.
"""

from __future__ import annotations

import secrets
import struct
import time
from base64 import b64encode
from dataclasses import dataclass

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import dns.tsig
import dns.update
from dns.rdtypes.ANY.TSIG import TSIG

from bench.lab.zone import Zone

_SECRET_BYTES = 32
_HEADER_BYTES = 12
_TYPE_AND_CLASS_BYTES = 4
_FUDGE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class UpdateKey:
    """A TSIG key (hmac-sha256); `secret` is base64."""

    name: str
    secret: str

    @classmethod
    def mint(cls, name: str) -> UpdateKey:
        """Return a new key."""
        return cls(name, b64encode(secrets.token_bytes(_SECRET_BYTES)).decode())

    @property
    def keyring(self) -> dict[dns.name.Name, dns.tsig.Key]:
        """Return the key, as dnspython takes it."""
        name = dns.name.from_text(self.name)
        return {name: dns.tsig.Key(name, self.secret, dns.tsig.HMAC_SHA256)}


def is_update(wire: bytes) -> bool:
    """Return whether a message is an update."""
    return len(wire) > 2 and (wire[2] >> 3) & 0xF == dns.opcode.UPDATE


def answer_update(zone: Zone, wire: bytes, key: UpdateKey) -> bytes | None:
    """Apply a signed update. None where the message cannot be read; NOTAUTH where it is not signed by the key."""
    try:
        update = dns.message.from_wire(wire, keyring=key.keyring)
    except (dns.message.UnknownTSIGKey, dns.tsig.BadSignature, dns.tsig.BadTime):
        return _refusal(wire, key)
    except dns.exception.DNSException:
        return None
    if not isinstance(update, dns.update.UpdateMessage):
        return None
    if not update.had_tsig:
        return _refusal(wire, key)
    response = dns.message.make_response(update)
    response.set_rcode(_unmet(zone, update) or dns.rcode.NOERROR)
    if response.rcode() == dns.rcode.NOERROR:
        for change in update.update:
            _apply(zone, change)
    return response.to_wire()


def _refusal(wire: bytes, key: UpdateKey) -> bytes:
    """Return NOTAUTH with the zone section, and a TSIG record without a MAC that states BADSIG (RFC 8945 §5.2.2)."""
    _, length = dns.name.from_wire(wire, _HEADER_BYTES)
    flags = dns.flags.QR | dns.opcode.to_flags(dns.opcode.UPDATE) | dns.rcode.NOTAUTH
    header = struct.pack("!2sHHHHH", wire[:2], flags, 1, 0, 0, 1)
    tsig = TSIG(  # type: ignore[no-untyped-call]
        dns.rdataclass.ANY,
        dns.rdatatype.TSIG,
        dns.tsig.HMAC_SHA256,
        int(time.time()),
        _FUDGE_SECONDS,
        b"",
        int.from_bytes(wire[:2], "big"),
        dns.rcode.BADSIG,
        b"",
    ).to_wire()
    assert tsig is not None
    record = dns.name.from_text(key.name).to_wire() or b""
    record += struct.pack("!HHIH", dns.rdatatype.TSIG, dns.rdataclass.ANY, 0, len(tsig)) + tsig
    return header + wire[_HEADER_BYTES : _HEADER_BYTES + length + _TYPE_AND_CLASS_BYTES] + record


def _unmet(zone: Zone, update: dns.update.UpdateMessage) -> dns.rcode.Rcode | None:
    """Return why a prerequisite is not met, None where all are (RFC 2136 §3.2).

    There are sets that must not be there (class NONE), and sets that must be as given (the zone's class).
    """
    wanted: dict[tuple[dns.name.Name, str], set[dns.rdata.Rdata]] = {}
    for each in update.prerequisite:
        kind = dns.rdatatype.to_text(each.rdtype)
        if each.deleting == dns.rdataclass.NONE:
            if _values(zone, each.name, kind):
                return dns.rcode.YXRRSET
        elif each.deleting == dns.rdataclass.ANY:
            if not _values(zone, each.name, kind):
                return dns.rcode.NXRRSET
        else:
            wanted.setdefault((each.name, kind), set()).update(each)
    if any(_values(zone, name, kind) != values for (name, kind), values in wanted.items()):
        return dns.rcode.NXRRSET
    return None


def _apply(zone: Zone, change: dns.rrset.RRset) -> None:
    """Apply one change (RFC 2136 §3.4.2).

    Class ANY removes a set, or a name; NONE removes a record; the zone's class adds.
    """
    name = change.name.to_text(omit_final_dot=True)
    kind = dns.rdatatype.to_text(change.rdtype)
    if change.deleting == dns.rdataclass.ANY:
        zone.remove(name, None if change.rdtype == dns.rdatatype.ANY else kind)
        return
    for rdata in change:
        _remove_same(zone, name, kind, rdata)
        if change.deleting is None:
            zone.add(name, kind, rdata.to_text(), ttl_seconds=change.ttl)


def _remove_same(zone: Zone, name: str, kind: str, rdata: dns.rdata.Rdata) -> None:
    """Remove a record, however the zone has written it."""
    for value in list(zone.values(name, kind)):
        if _parsed(kind, value) == _parsed(kind, rdata.to_text()):
            zone.remove(name, kind, value)


def _values(zone: Zone, name: dns.name.Name, kind: str) -> set[dns.rdata.Rdata]:
    return {_parsed(kind, value) for value in zone.values(name.to_text(omit_final_dot=True), kind)}


def _parsed(kind: str, value: str) -> dns.rdata.Rdata:
    return dns.rdata.from_text(
        dns.rdataclass.IN, dns.rdatatype.from_text(kind), value, origin=dns.name.root, relativize=False
    )
