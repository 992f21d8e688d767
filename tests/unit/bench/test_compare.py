from __future__ import annotations

import io

from rich.console import Console

from bench import cases, compare
from bench.compare import Measured, Results
from bench.loads import LoadRun
from bench.peers.frontage_edge import Frontage
from bench.peers.haproxy_proxy import HAProxy
from bench.peers.nginx_proxy import Nginx
from bench.pinned import LoadFailed

PEERS = (Nginx(), HAProxy(), Frontage())
CASE = cases.CASES[0]


def measured(cpu_us: float) -> Measured:
    return Measured(cpu_us, LoadRun(requests=1, errors=0, p50_us=1, p99_us=1, seconds=1.0))


def shown(results: Results) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(compare._table(results, [CASE], PEERS))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_failed_run_is_printed_and_the_others_go_on() -> None:
    console = Console(file=io.StringIO(), width=200)
    with compare._left_out("http-1k through nginx", console):
        raise LoadFailed("wrk on http://[::1]/: 3 errors in 9 requests")
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "left out: http-1k through nginx: wrk on http://[::1]/: 3 errors in 9 requests\n"


def test_medians_are_of_the_runs_that_succeeded() -> None:
    results: Results = {(CASE.key, "nginx"): [measured(9.0), measured(10.0), measured(30.0)], (CASE.key, "HAProxy"): []}
    assert compare.costs_of(results, CASE, ["nginx", "HAProxy", "Frontage"]) == {"nginx": 10.0}


def test_table_shows_which_proxy_failed_in_a_case() -> None:
    table = shown({(CASE.key, "nginx"): [measured(10.0)], (CASE.key, "Frontage"): [measured(12.0)]})
    assert table.count("failed") == 1
    assert "1.20" in table


def test_table_without_the_reference() -> None:
    table = shown({(CASE.key, "HAProxy"): [measured(10.0)], (CASE.key, "Frontage"): [measured(12.0)]})
    assert table.count("failed") == 1
    assert "12.0" in table
