"""The doctor, on what answers here: a CA that nobody trusts, roles that run without `frontage up`."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from api.cli.doctor import authorities, machine
from api.cli.doctor.findings import FindingState
from common.settings import load
from tests.component.test_origin_tls import server_context


def test_a_directory_that_is_not_trusted_names_the_variable_for_a_ca_of_ones_own(tmp_path: Path) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        server.socket = server_context(tmp_path, "localhost").wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        answering = threading.Thread(target=server.handle_request)
        answering.start()
        url = f"https://localhost:{server.server_port}/dir"
        finding, *_ = authorities.check_authorities(load({"FRONTAGE_ISSUER": "acme", "FRONTAGE_ACME_DIRECTORY": url}))
        answering.join()
    assert finding.state is FindingState.BROKEN
    assert "FRONTAGE_ACME_CA_FILE" in finding.text


class Alive(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"message":"alive"}')

    def log_message(self, *_: object) -> None: ...


@contextlib.contextmanager
def a_role() -> Iterator[str]:
    """Where it answers."""
    with http.server.HTTPServer(("127.0.0.1", 0), Alive) as server:
        answering = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        answering.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            answering.join()


def test_ports_of_roles_that_run_are_theirs_and_the_others_have_to_be_free() -> None:
    with contextlib.ExitStack() as held:
        names = ("FRONTAGE_EDGE_HTTP", "FRONTAGE_EDGE_HTTPS", "FRONTAGE_API_LISTEN")
        listening = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in names]
        ports = [each.getsockname()[1] for each in listening]
        environ = {name: f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)}
        environ |= {"FRONTAGE_API_ADMIN": "off", "FRONTAGE_MONITOR_ADMIN": "off"}
        environ["FRONTAGE_EDGE_ADMIN"] = held.enter_context(a_role())
        taken = machine.check_ports(load(environ), is_up=False)
        listening[-1].close()
        free = machine.check_ports(load(environ), is_up=False)
        environ["FRONTAGE_API_LISTEN"] = held.enter_context(a_role())
        both = machine.check_ports(load(environ), is_up=False)
    assert taken.state is FindingState.BROKEN
    assert taken.text.startswith("FRONTAGE_API_LISTEN: ")
    assert (free.state, "`frontage edge` on this machine" in free.text) == (FindingState.OK, True)
    assert (both.state, "`frontage edge` and `frontage api`" in both.text) == (FindingState.OK, True)
