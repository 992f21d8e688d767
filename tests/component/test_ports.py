"""Ports that are taken, as the command line finds them."""

from __future__ import annotations

import socket

from api.cli.ports import bind, free_instead_of_taken
from bench.lab.ports import free_ports
from common.host_ports import HostPort


def test_each_address_in_use_gets_a_free_port_of_its_host() -> None:
    free = HostPort("127.0.0.1", *free_ports(1))
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        taken = [HostPort(*listener.getsockname()) for listener in (one, other)]
        instead = free_instead_of_taken([*taken, free])
        assert set(instead) == set(taken)
        assert len({*instead.values(), *taken, free}) == 5
        for address in instead.values():
            bind(address).close()
