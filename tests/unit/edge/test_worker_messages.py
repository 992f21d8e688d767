from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from common.metrics import Family
from common.origin_faults import FailingOrigin, OriginIdentity
from common.settings import load
from edge.process.worker_messages import (
    Adopt,
    Beat,
    Command,
    Compose,
    Drain,
    Finish,
    ListenerPair,
    Ready,
    Recovered,
    Release,
    Report,
    Wake,
    decode_command,
    decode_report,
    encode,
)

FAILING = FailingOrigin(OriginIdentity("https", "a.example", 443, "b.example", True), "certificate")


@pytest.mark.parametrize("command", [Wake(), Adopt(1), Release(2), Drain(), Finish(9.5), Recovered([FAILING.origin])])
def test_orders_arrive_as_they_were_said(command: Command) -> None:
    line = encode(command)
    assert line.count(b"\n") == 1
    assert decode_command(line) == command


@pytest.mark.parametrize(
    "report", [Ready(), Beat(True), Beat(False, [Family.of("a", "A.", "gauge", 2)], [FAILING], [FAILING.origin])]
)
def test_reports_arrive_as_they_were_said(report: Report) -> None:
    assert decode_report(encode(report)) == report


def test_a_beat_of_an_older_worker_names_no_recovered_origins() -> None:
    line = encode(Beat(False)).replace(b',"recovered":[]', b"")
    assert b"recovered" not in line
    assert decode_report(line) == Beat(False)


def test_a_wake_up_is_one_byte() -> None:
    assert encode(Wake()) == b"\n"


def test_begin_carries_every_setting_but_the_secret_ones() -> None:
    settings = load(
        {
            "FRONTAGE_DATABASE_URL": "postgresql://frontage:hushhush@db/frontage",
            "FRONTAGE_FEED_URL": "postgresql://frontage:hushhush@standby/frontage",
            "FRONTAGE_EDGE_HTTPS": "[::1]:8443",
            "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8, fd00::/8",
            "FRONTAGE_DNS_SERVERS": "127.0.0.1:5353",
            "FRONTAGE_SERVICE_SERVERS": "192.0.2.1,2001:db8::1",
            "FRONTAGE_STATE_DIR": "/tmp/frontage",
            "FRONTAGE_ACME_EAB": "ca.example=kid:hushhush-hushhush",
            "FRONTAGE_EDGE_HTTPS_REDIRECT": "off",
            "FRONTAGE_EDGE_WORKERS": "3",
            "FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS": "0.25",
            "FRONTAGE_API_ADMIN": "off",
            "FRONTAGE_RDAP_BOOTSTRAP": "off",
            "FRONTAGE_PUBLIC_URL": "https://api.example",
        }
    )
    begin = Compose("module:function", settings, 1, (ListenerPair(3, 4), ListenerPair(5, 6)))
    line = encode(begin)
    assert b"hushhush" not in line
    assert line.startswith(b'{"say":"Begin",')  # as to and from processes of other versions
    arrived = decode_command(line)
    assert isinstance(arrived, Compose)
    assert arrived.settings == replace(settings, database_url=None, feed_url=None, acme_eab=())
    assert (arrived.service, arrived.pair, arrived.pairs) == (begin.service, begin.pair, begin.pairs)


def test_the_settings_of_an_older_supervisor_are_read() -> None:
    """Packages were replaced, and a worker ended before the upgrade: the old supervisor starts a new one."""
    sent = {
        "edge_https": ["::1", 8443],
        "edge_https_redirect": False,
        "edge_head_timeout_seconds": 0.25,
        "edge_max_body_bytes": None,
        "allow_private_addresses": ["127.0.0.0/8", "fd00::/8"],
        "deny_addresses": [],
        "dns_servers": [["127.0.0.1", 5353], ["::1", 53]],
        "state_dir": "/tmp/frontage",
        "acme_eab": [["ca.example", "kid", "hushhush-hushhush"]],
    }
    line = orjson.dumps({"say": "Begin", "service": "module:function", "settings": sent, "pair": 0, "pairs": []})
    arrived = decode_command(line)
    assert isinstance(arrived, Compose)
    assert arrived.settings == load(
        {
            "FRONTAGE_EDGE_HTTPS": "[::1]:8443",
            "FRONTAGE_EDGE_HTTPS_REDIRECT": "off",
            "FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS": "0.25",
            "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8,fd00::/8",
            "FRONTAGE_DNS_SERVERS": "127.0.0.1:5353,[::1]:53",
            "FRONTAGE_STATE_DIR": "/tmp/frontage",
        }
    )


@pytest.mark.parametrize("line", [b'{"say":"Ready"}\n', b'{"say":"Jump"}\n', b"no json\n"])
def test_what_no_supervisor_says_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of them
        decode_command(line)


def test_what_no_worker_says_is_refused() -> None:
    with pytest.raises(ValueError, match="not a report"):
        decode_report(b'{"say":"Drain"}\n')
