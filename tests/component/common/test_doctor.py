"""The doctor, on a CA that answers with a certificate nobody here trusts."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path

from common.cli import doctor
from common.cli.doctor import State
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
        finding, *_ = doctor._issuers(load({"FRONTAGE_ISSUER": "acme", "FRONTAGE_ACME_DIRECTORY": url}))
        answering.join()
    assert finding.state is State.BROKEN
    assert "FRONTAGE_ACME_CA_FILE" in finding.says
