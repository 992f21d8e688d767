"""``locust -f bench/``: visitors of the demo's domain, and a partner at its API.

Start ``frontage demo`` first and leave it running; this finds it by the file it writes (in FRONTAGE_STATE_DIR when
that is set, for both, else the last demo of this user), so no host is needed on the command line:

    locust -f bench/ --headless -u 10 -r 10 -t 10s

Visitors speak HTTPS to the edge, with the demo's root as their only trust, whatever the domain resolves to, and keep
their connection as browsers do. Partners list their domains and check eligibility. Nine visitors to one partner.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from locust import HttpUser, between, events, tag, task
from locust.env import Environment
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from common.cli.running_demo import RunningDemo, find_running_demo
from common.settings import parse_host_port

_TOKEN_SECONDS = 50 * 60  # a little less than it is good for


@events.init.add_listener  # type: ignore[untyped-decorator]
def require_demo(**_: object) -> RunningDemo:
    """Ends locust, with one line, when there is nothing to drive."""
    demo = find_running_demo()
    if demo is None:
        sys.exit("no demo runs: start `frontage demo`, and give FRONTAGE_STATE_DIR here if it has one")
    return demo


class EdgeAdapter(HTTPAdapter):
    """Connects to the edge's address; Host, SNI and the certificate's name stay the domain's."""

    def __init__(self, demo: RunningDemo) -> None:
        self._demo = demo
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **settings: Any) -> None:
        settings |= {"server_hostname": self._demo.domain, "assert_hostname": self._demo.domain}
        super().init_poolmanager(connections, maxsize, block, **settings)

    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        authority = f"{self._demo.domain}:{parse_host_port(self._demo.edge_https).port}"
        request.headers["Host"] = authority
        assert request.url is not None
        request.url = request.url.replace(authority, self._demo.edge_https, 1)
        return super().send(request, *args, **kwargs)


class DemoUser(HttpUser):
    """Finds the demo; `host` is set from it."""

    abstract = True

    def __init__(self, environment: Environment) -> None:
        self.demo = require_demo()
        self.host = self.base_url(self.demo)
        super().__init__(environment)  # type: ignore[no-untyped-call]
        self.client.trust_env = False  # no proxy between us and loopback

    def base_url(self, demo: RunningDemo) -> str:
        raise NotImplementedError


class Visitor(DemoUser):
    """A browser on the customer's domain."""

    weight = 9
    wait_time = between(0.05, 0.5)

    def base_url(self, demo: RunningDemo) -> str:
        return f"https://{demo.domain}:{parse_host_port(demo.edge_https).port}"

    def on_start(self) -> None:
        self.client.verify = self.demo.ca_file
        self.client.mount("https://", EdgeAdapter(self.demo))

    @tag("browse")
    @task(6)
    def open_page(self) -> None:
        with self.client.get("/", name="edge: page", catch_response=True) as response:
            if self.demo.domain not in response.text:
                response.failure(f"not the page of {self.demo.domain}: status {response.status_code}")

    @tag("browse")
    @task(3)
    def load_picture(self) -> None:
        self.client.get("/static/mark.svg", name="edge: root path")

    @tag("browse")
    @task(1)
    def send_form(self) -> None:
        self.client.post("/echo", data={"colour": "green", "size": "42"}, name="edge: form")


class Partner(DemoUser):
    """A partner's server at the API."""

    weight = 1
    wait_time = between(0.2, 1)

    def base_url(self, demo: RunningDemo) -> str:
        return demo.api

    def on_start(self) -> None:
        self._signed_in_at = float("-inf")

    @tag("api")
    @task(2)
    def list_domains(self) -> None:
        self.client.get("/power?page=0&size=50", headers=self._headers(), name="api: GET /power, list")

    @tag("api")
    @task(1)
    def check_eligibility(self) -> None:
        path = f"/power?domain={self.demo.domain}"
        self.client.get(path, headers=self._headers(), name="api: GET /power, eligibility")

    def _headers(self) -> dict[str, str]:
        if time.monotonic() - self._signed_in_at > _TOKEN_SECONDS:
            body = {"applicationId": self.demo.application_id, "secret": self.demo.client_secret}
            self._token = self.client.post("/token", json=body, name="api: POST /token").json()["auth_token"]
            self._signed_in_at = time.monotonic()
        return {"applicationId": self.demo.application_id, "Authorization": f"Bearer {self._token}"}
