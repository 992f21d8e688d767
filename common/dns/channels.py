"""c-ares channels: each for one server, and what their answers mean.

c-ares answers from a cache of its own (NXDOMAIN and NODATA for minutes, no switch in pycares) and falls over to the
next server silently. So a channel here has one server and a short life, and its owner asks it each question once.
"""

from __future__ import annotations

import aiodns
import pycares

from common.dns.questions import Answer, Outcome
from common.host_ports import HostPort
from common.records import RecordType, authorization, normal_name, normal_value, text_of

TRY_SECONDS = 0.6
_TRIES = 2
_FLAGS = (
    pycares.ARES_FLAG_EDNS
    | pycares.ARES_FLAG_NOSEARCH
    | pycares.ARES_FLAG_NOALIASES
    | pycares.ARES_FLAG_NO_DFLT_SVR
    | pycares.ARES_FLAG_NOCHECKRESP  # report SERVFAIL and REFUSED instead of asking again
)

_OUTCOMES = {
    aiodns.error.ARES_ENODATA: Outcome.NO_DATA,
    aiodns.error.ARES_ENOTFOUND: Outcome.NO_NAME,
    aiodns.error.ARES_ECONNREFUSED: Outcome.TIMEOUT,
    aiodns.error.ARES_ETIMEOUT: Outcome.TIMEOUT,
    aiodns.error.ARES_ECANCELLED: Outcome.TIMEOUT,
}


def open_channel(server: HostPort, *, try_seconds: float) -> aiodns.DNSResolver | None:
    """Open a channel to a server, or return None when this process has no room for another."""
    try:
        return aiodns.DNSResolver([str(server)], timeout=try_seconds, tries=_TRIES, flags=_FLAGS)
    except (pycares.AresError, OSError):
        return None


def outcome_of(error: aiodns.error.DNSError) -> Outcome | None:
    """Return the outcome that an error of c-ares stands for; None where it does not take the name."""
    if error.args[0] == aiodns.error.ARES_EBADNAME:
        return None
    return _OUTCOMES.get(error.args[0], Outcome.SERVER_FAILURE)


def read_result(result: pycares.DNSResult, kind: RecordType, owner: str | None = None) -> Answer:
    """Return the records of type `kind` in the answer section.

    With `owner`, a name in normal form, only those of that name: the section also holds the CNAMEs that a resolver
    followed, and the records they led to.
    """
    values, ttl_seconds = [], 0
    for record in result.answer:
        if owner is not None and normal_name(record.name) != owner:
            continue
        if (value := _value(record.data, kind)) is not None:
            values.append(value)
            ttl_seconds = max(ttl_seconds, record.ttl)
    return Answer(Outcome.RECORDS, tuple(values), ttl_seconds=ttl_seconds) if values else Answer(Outcome.NO_DATA)


def _value(data: object, kind: RecordType) -> str | None:
    match data:
        case pycares.ARecordData(addr=text) if kind == "A":
            return text
        case pycares.AAAARecordData(addr=text) if kind == "AAAA":
            return normal_value(kind, text)
        case pycares.CNAMERecordData(cname=name) if kind == "CNAME":
            return normal_name(name)
        case pycares.TXTRecordData(data=octets) if kind == "TXT":
            return text_of(octets)
        case pycares.MXRecordData() if kind == "MX":
            return f"{data.priority} {normal_name(data.exchange)}"
        case pycares.NSRecordData(nsdname=name) if kind == "NS":
            return normal_name(name)
        case pycares.CAARecordData() if kind == "CAA":
            value: str | bytes = data.value  # octets where it is not ASCII
            octets = value if isinstance(value, bytes) else value.encode()
            return authorization(data.critical, data.tag, text_of(octets))
        case pycares.SRVRecordData() if kind == "SRV":
            return f"{data.priority} {data.weight} {data.port} {normal_name(data.target)}"
        case pycares.PTRRecordData(dname=name) if kind == "PTR":
            return normal_name(name)
        case pycares.SOARecordData() if kind == "SOA":
            names = f"{normal_name(data.mname)} {normal_name(data.rname)}"
            return f"{names} {data.refresh} {data.retry} {data.expire} {data.minimum}"
        case _:
            return None
