from __future__ import annotations

import contextlib
import os
import select
import socket

import pytest

from bench.lab.ports import free_ports
from common.errors import OperatorError
from common.host_ports import HostPort
from common.listen_errors import cannot_listen
from common.settings import load
from edge.process.listeners import Listeners


def free_address() -> HostPort:
    return HostPort("127.0.0.1", *free_ports(1))


def test_each_gate_is_a_pair_of_bound_sockets_and_descriptors_name_them_all() -> None:
    http, https = free_address(), free_address()
    listeners = Listeners.opened(http, https, free_address(), 3)
    try:
        assert len(listeners.pairs) == 3
        assert len(set(listeners.descriptors)) == 6
        for pair in listeners.pairs:
            for descriptor, address in ((pair.http, http), (pair.https, https)):
                with socket.socket(fileno=os.dup(descriptor)) as listener:
                    assert listener.getsockname() == tuple(address)
                    assert not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                assert not os.get_inheritable(descriptor)
        with socket.socket(fileno=os.dup(listeners.admin)) as listener:
            assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    finally:
        listeners.close()


def test_clients_are_refused_until_it_listens_and_then_connect_before_a_worker_accepts() -> None:
    http, https = free_address(), free_address()
    listeners = Listeners.opened(http, https, free_address(), 1)
    try:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(http)
        listeners.listen()
        socket.create_connection(http).close()
    finally:
        listeners.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(http)


@pytest.mark.parametrize("is_listening", [False, True])
def test_address_is_not_shared_with_another_edge(*, is_listening: bool) -> None:
    http, https = free_address(), free_address()
    first = Listeners.opened(http, https, free_address(), 1)
    if is_listening:
        first.listen()
    try:
        with pytest.raises(OperatorError, match=r"FRONTAGE_EDGE_HTTP: .* is in use"):
            Listeners.opened(http, free_address(), free_address(), 1)
        with pytest.raises(OperatorError, match=r"FRONTAGE_EDGE_HTTPS: .* is in use"):
            Listeners.opened(free_address(), https, free_address(), 1)
        with pytest.raises(OperatorError, match=r"FRONTAGE_EDGE_HTTP: .*in use.*; FRONTAGE_EDGE_HTTPS: .*in use"):
            Listeners.opened(http, https, free_address(), 1)
    finally:
        first.close()


def test_one_address_for_both_ports_is_refused() -> None:
    address = free_address()
    with pytest.raises(OperatorError, match="FRONTAGE_EDGE_HTTPS"):
        Listeners.opened(address, address, free_address(), 2)


def test_address_of_another_machine_names_its_variable() -> None:
    with pytest.raises(OperatorError, match="FRONTAGE_EDGE_HTTP: "):
        Listeners.opened(HostPort("192.0.2.1", 8080), free_address(), free_address(), 1)


def test_low_port_without_privilege_says_what_to_do() -> None:
    error = cannot_listen(HostPort("0.0.0.0", 80), "FRONTAGE_EDGE_HTTP", PermissionError(13, "Permission denied"))
    assert "above 1023" in str(error)


def listener_of(listeners: list[socket.socket], source: str) -> int:
    """Which of them a connection from that address comes to."""
    with socket.create_connection(listeners[0].getsockname()[:2], source_address=(source, 0)):
        ready, _, _ = select.select(listeners, [], [])
        ready[0].accept()[0].close()
    return listeners.index(ready[0])


def test_a_clients_address_leads_to_one_pair_and_addresses_to_all_of_them() -> None:
    opened = Listeners.opened(free_address(), free_address(), free_address(), 4)
    try:
        opened.listen()
        opened.spread_by_address()
        for port in ("http", "https"):
            listeners = [socket.socket(fileno=os.dup(getattr(pair, port))) for pair in opened.pairs]
            with contextlib.ExitStack() as closing:
                for each in listeners:
                    closing.enter_context(each)
                places = [{listener_of(listeners, f"127.0.7.{n}") for _ in range(3)} for n in range(1, 65)]
            assert {len(each) for each in places} == {1}
            counts = [sum(place in each for each in places) for place in range(4)]
            assert min(counts) >= 8
    finally:
        opened.close()


def test_a_clients_ipv6_network_leads_to_one_pair() -> None:
    http, https, admin = (HostPort("::1", port) for port in free_ports(3))
    opened = Listeners.opened(http, https, admin, pairs=4)
    try:
        opened.listen()
        opened.spread_by_address()
        listeners = [socket.socket(fileno=os.dup(pair.https)) for pair in opened.pairs]
        with contextlib.ExitStack() as closing:
            for each in listeners:
                closing.enter_context(each)
            assert len({listener_of(listeners, "::1") for _ in range(16)}) == 1
    finally:
        opened.close()


def test_connections_of_a_trusted_proxy_are_not_spread_by_its_address() -> None:
    with pytest.raises(OperatorError, match=r"EDGE_TRUSTED_PROXIES .*EDGE_WORKER_BY_ADDRESS"):
        load({"FRONTAGE_EDGE_WORKER_BY_ADDRESS": "on", "FRONTAGE_EDGE_TRUSTED_PROXIES": "10.0.0.0/8"})
