"""``locust -f bench/``: visitors, uploads and WebSockets on many customer domains, and a partner at the API.

Start ``frontage demo`` first and leave it running; this finds it by the file it writes (in FRONTAGE_STATE_DIR when
that is set, for both, else the last demo of this user), so no host is needed on the command line:

    locust -f bench/ --headless -u 20 -r 10 -t 20s

It powers 20 domains of its own beneath the demo's (as many as ``--domains``; they stay for the next run), and then
come, of each 20 users:

    Visitor    14   opens pages, loads a picture, sends a form; every now and then goes on to another domain
    Uploader    2   posts bodies up to 1 MB, with their length and in chunks, and checks what the origin got
    Chatter     2   keeps a WebSocket open, and checks that its messages come back
    Partner     2   lists domains, checks eligibility, changes an applicationUrl, powers or secures a new domain and
                    removes it, has records monitored, and asks what is wrong with a domain

``-u 200 Visitor`` runs visitors only, ``--tags uploads api`` what is tagged so. All speak HTTPS to the edge's address,
with the demo's root as their only trust, whatever the domain resolves to, and keep connections as browsers do.
"""

from __future__ import annotations

import hashlib
import random
import secrets
import socket
import ssl
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from gevent import get_hub
from locust import HttpUser, User, between, events, tag, task
from locust.env import Environment
from locust.exception import StopUser
from requests import PreparedRequest, Response
from requests import Session as PlainSession
from requests.adapters import HTTPAdapter

from bench.demo.running_demo import RunningDemo, find_running_demo
from bench.demo.stage import CNAME_TARGET
from common.host_ports import HostPort, parse_host_port

_TOKEN_SECONDS = 50 * 60  # a little less than it is good for
_UPLOAD_BYTES = (1_000, 64_000, 1_000_000)
_CHUNK_BYTES = 16_384
_MESSAGES = ("hello", "x" * 1_000, "y" * 16_000)
_SERVED_SECONDS = 10


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def add_options(parser: ArgumentParser, **_: object) -> None:
    """Add the option ``--domains`` to locust."""
    parser.add_argument("--domains", type=int, default=20, help="how many domains of the demo are visited")


@events.init.add_listener  # type: ignore[untyped-decorator]
def require_demo(**_: object) -> RunningDemo:
    """Return the running demo; end locust with one line if there is none."""
    get_hub().loop.update_now()  # else the seconds since locust began to import count as a part of --run-time
    demo = find_running_demo()
    if demo is None:
        sys.exit("no demo runs: start `frontage demo`, and give FRONTAGE_STATE_DIR here if it has one")
    return demo


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def enrol_domains(environment: Environment, **_: object) -> None:
    """Power the domains before the first user visits them, and wait until they are served."""
    demo = require_demo()
    with PlainSession() as api:
        api.trust_env = False
        api.headers.update(_authorization(demo, api.post(f"{demo.api}/token", json=_credentials(demo)).json()))
        for domain in domains_of(demo, environment):
            if api.get(f"{demo.api}/power", params={"domain": domain}).json().get("powerStatus") != "active":
                api.post(f"{demo.api}/power", json=_enrolment(demo, domain)).raise_for_status()
    for domain in domains_of(demo, environment):
        _wait_until_served(demo, domain)


def domains_of(demo: RunningDemo, environment: Environment) -> list[str]:
    """Return the demo's own domain, and those that `enrol_domains` powers beneath the same name."""
    assert environment.parsed_options is not None
    zone = demo.domain.partition(".")[2]
    return [demo.domain, *(f"locust-{number}.{zone}" for number in range(environment.parsed_options.domains))]


def _wait_until_served(demo: RunningDemo, domain: str) -> None:
    """Wait until the domain has a certificate; end locust if it has none in time.

    The edge holds a handshake while the certificate is on its way; before it knows of the domain, it refuses.
    """
    deadline = time.monotonic() + _SERVED_SECONDS
    while True:
        try:
            connect(demo, domain).close()
        except OSError:
            if time.monotonic() > deadline:
                sys.exit(f"{domain} is not served {_SERVED_SECONDS} seconds after it was powered")
            time.sleep(0.05)
        else:
            return


def connect(demo: RunningDemo, domain: str) -> ssl.SSLSocket:
    """Open a TLS connection with the edge for `domain`, verified.

    Raises: OSError.
    """
    trust = ssl.create_default_context(cafile=demo.ca_file)
    raw = socket.create_connection(parse_host_port(demo.edge_https), timeout=_SERVED_SECONDS)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as browsers do
    try:
        return trust.wrap_socket(raw, server_hostname=domain)
    except BaseException:
        raw.close()
        raise


# At the edge -----------------------------------------------------------------------------------------------


class EdgeAdapter(HTTPAdapter):
    """Connects to the edge's address; Host, SNI and the certificate's name stay the domain's."""

    def __init__(self, edge: HostPort, domain: str) -> None:
        self._edge = str(edge)
        self._domain = domain
        self._authority = f"{domain}:{edge.port}"
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **settings: Any) -> None:
        """Have each connection's certificate verified for the domain."""
        settings |= {"server_hostname": self._domain, "assert_hostname": self._domain}
        super().init_poolmanager(connections, maxsize, block, **settings)

    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        """Send the request to the edge's address, with the domain as Host."""
        request.headers["Host"] = self._authority
        assert request.url is not None
        request.url = request.url.replace(self._authority, self._edge, 1)
        return super().send(request, *args, **kwargs)


class EdgeUser(HttpUser):
    """A person with a browser, on one of the domains."""

    abstract = True

    def __init__(self, environment: Environment) -> None:
        self.demo = require_demo()
        self.edge = parse_host_port(self.demo.edge_https)
        self.host = f"https://{self.demo.domain}"  # each request names its domain
        super().__init__(environment)  # type: ignore[no-untyped-call]
        self.client.trust_env = False  # no proxy between us and loopback
        self.client.verify = self.demo.ca_file

    def on_start(self) -> None:
        """Begin on one of the domains."""
        self.go_to(random.choice(domains_of(self.demo, self.environment)))

    def go_to(self, domain: str) -> None:
        """Leave, connection and all, and begin again on `domain`."""
        self.client.close()
        self.client.cookies.clear()
        self.client.mount("https://", EdgeAdapter(self.edge, domain))
        self.domain = domain

    def url(self, path: str) -> str:
        """Return the URL of the path on the present domain."""
        return f"https://{self.domain}:{self.edge.port}{path}"


class Visitor(EdgeUser):
    """A browser on customers' domains."""

    weight = 14
    wait_time = between(0.05, 0.5)

    @tag("browse")
    @task(6)
    def open_page(self) -> None:
        """Load the domain's first page."""
        with self.client.get(self.url("/"), name="edge: page", catch_response=True) as response:
            if self.domain not in response.text:
                response.failure(f"not the page of {self.domain}: status {response.status_code}")

    @tag("browse")
    @task(3)
    def load_picture(self) -> None:
        """Load a picture from a root path."""
        self.client.get(self.url("/static/mark.svg"), name="edge: root path")

    @tag("browse")
    @task(1)
    def send_form(self) -> None:
        """Send a form."""
        self.client.post(self.url("/echo"), data={"colour": "green", "size": "42"}, name="edge: form")

    @tag("browse")
    @task(1)
    def follow_a_link(self) -> None:
        """Go to another domain."""
        self.go_to(random.choice(domains_of(self.demo, self.environment)))


class Uploader(EdgeUser):
    """Sends bodies, and checks size and digest of what the origin received."""

    weight = 2
    wait_time = between(0.2, 1)

    @tag("uploads")
    @task
    def with_length(self) -> None:
        """Upload a body with its length."""
        body = random.randbytes(random.choice(_UPLOAD_BYTES))
        self._upload(body, body, "edge: upload with length")

    @tag("uploads")
    @task
    def in_chunks(self) -> None:
        """Upload a body in chunks."""
        body = random.randbytes(random.choice(_UPLOAD_BYTES))
        self._upload(_chunks(body), body, "edge: upload in chunks")

    def _upload(self, sent: bytes | Iterator[bytes], body: bytes, name: str) -> None:
        with self.client.post(self.url("/echo"), data=sent, name=name, catch_response=True) as response:
            if response.status_code == 200:
                received = response.json()["body"]
                if received != {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}:
                    response.failure(f"{len(body)} bytes sent, the origin got {received}")


def _chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _CHUNK_BYTES):
        yield body[start : start + _CHUNK_BYTES]


class Chatter(User):
    """A page that keeps a WebSocket open."""

    weight = 2
    wait_time = between(0.05, 0.5)

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.demo = require_demo()

    def on_start(self) -> None:
        """Open the WebSocket."""
        import websocket  # noqa: PLC0415 - an extra: locust imports this file to say what there is

        domain = random.choice(domains_of(self.demo, self.environment))
        begun_at = time.perf_counter()
        try:
            self.socket = websocket.create_connection(f"wss://{domain}/socket", socket=connect(self.demo, domain))
        except (OSError, websocket.WebSocketException) as error:
            self._tell("edge: WebSocket opened", begun_at, 0, error)
            raise StopUser from error
        self._tell("edge: WebSocket opened", begun_at, 0, None)

    def on_stop(self) -> None:
        """Close the WebSocket."""
        self.socket.close()

    @tag("sockets")
    @task
    def say(self) -> None:
        """Send a message, and check that it comes back."""
        text = random.choice(_MESSAGES)
        failure: Exception | None = None
        begun_at = time.perf_counter()
        try:
            self.socket.send(text)
            if self.socket.recv() != text:
                failure = ValueError("something else came back")
        except Exception as error:  # noqa: BLE001 - reported to locust, whatever it is
            failure = error
        self._tell("edge: WebSocket message", begun_at, len(text), failure)
        if failure:
            raise StopUser

    def _tell(self, name: str, begun_at: float, size: int, failure: Exception | None) -> None:
        self.environment.events.request.fire(
            request_type="WS",
            name=name,
            response_time=(time.perf_counter() - begun_at) * 1000,
            response_length=size,
            exception=failure,
            context={},
        )


# At the API ------------------------------------------------------------------------------------------------


class Partner(HttpUser):
    """A partner's server at the API."""

    weight = 2
    wait_time = between(0.2, 1)

    def __init__(self, environment: Environment) -> None:
        self.demo = require_demo()
        self.host = self.demo.api
        super().__init__(environment)  # type: ignore[no-untyped-call]
        self.client.trust_env = False

    def on_start(self) -> None:
        """Begin without a token."""
        self._signed_in_at = float("-inf")

    @tag("api")
    @task(4)
    def list_domains(self) -> None:
        """List the powered domains."""
        self.client.get("/power?page=0&size=50", headers=self._headers(), name="api: GET /power, list")

    @tag("api")
    @task(4)
    def check_eligibility(self) -> None:
        """Check a domain's eligibility."""
        domain = random.choice(domains_of(self.demo, self.environment))
        path = f"/power?domain={domain}"
        self.client.get(path, headers=self._headers(), name="api: GET /power, eligibility")

    @tag("api")
    @task(2)
    def move(self) -> None:
        """Change a domain's application URL."""
        domain = random.choice(domains_of(self.demo, self.environment))
        change = {"domain": domain, "applicationUrl": f"{self.demo.origin}/{random.choice('ab')}"}
        self.client.put("/power", json=change, headers=self._headers(), name="api: PUT /power")

    @tag("api")
    @task(1)
    def power_and_remove(self) -> None:
        """Power a new domain, and remove it."""
        self._enrol_and_remove("/power", _enrolment(self.demo, self._new_domain()))

    @tag("api")
    @task(1)
    def list_secured(self) -> None:
        """List the secured domains."""
        self.client.get("/ssl?status=active", headers=self._headers(), name="api: GET /ssl, list")

    @tag("api")
    @task(1)
    def secure_and_remove(self) -> None:
        """Secure a new domain, and remove it."""
        self._enrol_and_remove("/ssl", {"domain": self._new_domain(), "applicationUrl": self.demo.origin})

    @tag("api")
    @task(1)
    def diagnose(self) -> None:
        """Ask what is wrong with a domain."""
        path = f"/domains/{random.choice(domains_of(self.demo, self.environment))}/diagnosis"
        self.client.get(path, headers=self._headers(), name="api: GET /domains/:domain/diagnosis")

    @tag("api", "monitor")
    @task(1)
    def list_monitored(self) -> None:
        """List the monitored domains."""
        self.client.get("/monitor/domains?limit=50", headers=self._headers(), name="api: GET /monitor/domains")

    @tag("api", "monitor")
    @task(2)
    def watch_and_forget(self) -> None:
        """Have a record monitored, read it back, and end that.

        The record exists, so that no webhook reports one missing; it is checked meanwhile.
        """
        host, _, zone = self._new_domain().partition(".")
        name = {"domain": zone, "subdomain": host}
        record = {"type": "CNAME", "host": host, "value": CNAME_TARGET, "ttl": 300}
        path, headers = "/monitor/domains", self._headers()
        self.client.post(path, json=name | {"dnsRecords": [record]}, headers=headers, name=f"api: POST {path}")
        with self.client.get(
            f"{path}/{zone}?subdomain={host}", headers=headers, name=f"api: GET {path}/:domain", catch_response=True
        ) as response:
            if response.json().get("dns_records") != [record]:
                response.failure(response.text)
        self.client.delete(path, json=name, headers=headers, name=f"api: DELETE {path}")

    def _new_domain(self) -> str:
        return f"locust-{secrets.token_hex(6)}.{self.demo.domain.partition('.')[2]}"

    def _enrol_and_remove(self, path: str, enrolment: dict[str, Any]) -> None:
        with self.client.post(
            path, json=enrolment, headers=self._headers(), name=f"api: POST {path}", catch_response=True
        ) as response:
            if response.status_code != 200:
                response.failure(response.text)
                return
        gone = {"domain": enrolment["domain"]}
        self.client.delete(path, json=gone, headers=self._headers(), name=f"api: DELETE {path}")

    def _headers(self) -> dict[str, str]:
        if time.monotonic() - self._signed_in_at > _TOKEN_SECONDS:
            answer = self.client.post("/token", json=_credentials(self.demo), name="api: POST /token").json()
            self._authorization = _authorization(self.demo, answer)
            self._signed_in_at = time.monotonic()
        return self._authorization


def _credentials(demo: RunningDemo) -> dict[str, str]:
    return {"applicationId": demo.application_id, "secret": demo.client_secret}


def _authorization(demo: RunningDemo, answer: dict[str, str]) -> dict[str, str]:
    return {"applicationId": demo.application_id, "Authorization": f"Bearer {answer['auth_token']}"}


def _enrolment(demo: RunningDemo, domain: str) -> dict[str, Any]:
    return {"domain": domain, "applicationUrl": f"{demo.origin}/a", "powerRootPathAccess": ["/static"]}
