"""Ports for servers that are given their port."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor

from bench.lab.ports import free_ports, unreserved_ports


def test_concurrent_callers_get_different_ports() -> None:
    with ThreadPoolExecutor(8) as threads:
        found = [port for ports in threads.map(free_ports, [5] * 20) for port in ports]
    assert len(set(found)) == 100


def test_a_port_in_use_is_left_out() -> None:
    [first] = free_ports(1)
    with socket.create_server(("127.0.0.1", first + 1)):
        assert first + 1 not in free_ports(3)


def test_ports_for_programs_that_people_run_are_not_those_of_tests() -> None:
    assert max(free_ports(20)) < min(unreserved_ports(20))
