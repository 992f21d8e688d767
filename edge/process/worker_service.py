"""What a worker serves, and its one composition root: reader, keyring, TLS and client connections are wired here.

It must not accept connections or talk to the supervisor: that is the worker's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from common.clock import SystemClock
from common.metrics import Family, Labels
from common.origin_faults import FailingOrigin, OriginIdentity
from common.secrets import load_keyring
from common.settings import Settings
from common.traffic import TrafficReport
from edge.proxy.client_connection import ClientConnection
from edge.proxy.http2_connection import Http2ClientConnection
from edge.proxy.worker_context import ReplicaView, WorkerContext
from edge.replica.certificate_keys import CertificateUse, is_key_missing
from edge.replica.directory import replica_path
from edge.replica.reader import ReplicaReader
from edge.tls.contexts import HTTP2, PROTOCOLS, PROTOCOLS_WITH_HTTP2
from edge.tls.layer import TlsLayer
from edge.tls.shared import TlsShared
from edge.transport.proxy_protocol import entrance


class Service(Protocol):
    """What a worker needs of the service that it runs."""

    def plain_protocol(self) -> asyncio.Protocol:
        """Return a protocol for one connection accepted on EDGE_HTTP."""

    def secure_protocol(self) -> asyncio.Protocol:
        """Return a protocol for one connection accepted on EDGE_HTTPS."""

    def on_replica_change(self) -> None:
        """Serve by the replica's last commit."""

    def drain(self) -> None:
        """End keep-alive from now on; may be called again."""

    def is_idle(self) -> bool:
        """Return whether nothing runs that a client waits for."""

    def measurements(self) -> list[Family]:
        """Return the metrics."""

    def failing_origins(self) -> list[FailingOrigin]:
        """Return origins that could not be reached in the last minute.

        At most `edge.upstream.breaker.MOST_REPORTED` are returned.
        """

    def take_recovered_origins(self) -> list[OriginIdentity]:
        """Return origins that were reached again since this was last called, at most as many."""

    def note_recovered_origins(self, origins: Sequence[OriginIdentity]) -> None:
        """Note that another worker reached these origins again."""

    def certificates(self) -> CertificateUse:
        """Return how many certificates can be used, of those that clients asked for."""

    def take_traffic(self) -> TrafficReport:
        """Return what was counted for each domain since this was last called."""

    def close(self) -> None:
        """End everything. `take_traffic` may be called once more."""


class ClosableReader(ReplicaView, Protocol):
    """`edge.replica.reader.ReplicaReader`, or a stand-in."""

    def sample_certificates(self) -> dict[str, bytes]:
        """Return some certificates by domain."""

    def close(self) -> None:
        """Close the replica."""


class EdgeService:
    """Serves the edge's data path. Created by `compose`, closed by the worker, within one loop."""

    def __init__(self, settings: Settings, reader: ClosableReader, loop: asyncio.AbstractEventLoop) -> None:
        """Wire the data path. `reader` is closed with the service.

        Raises: `OperatorError` when the master key cannot be read.
        """
        keyring = load_keyring(settings.key_file)
        self._reader = reader
        self._keyring = keyring
        self._worker = WorkerContext(settings, reader, keyring, loop)
        limits = self._worker.connection_limits
        self._tls = TlsShared(
            reader,
            keyring,
            loop,
            SystemClock(),
            connection_limits=limits,
            deferred=self._worker.deferred,
            protocols=PROTOCOLS_WITH_HTTP2 if settings.edge_http2 else PROTOCOLS,
        )
        first = partial(
            entrance,
            connection_limits=limits,
            trusted_proxies=settings.edge_trusted_proxies,
            seconds=self._worker.head_seconds,
        )
        self.plain_protocol = first(partial(ClientConnection, self._worker, secure=False))
        self.secure_protocol = first(partial(TlsLayer, self._tls, self._inside_tls))

    def _inside_tls(self, protocol: str | None) -> asyncio.Protocol:
        """Return a client connection that speaks what ALPN chose."""
        if protocol == HTTP2:
            return Http2ClientConnection(self._worker)
        return ClientConnection(self._worker, secure=True)

    def on_replica_change(self) -> None:
        """Serve by the replica's last commit."""
        self._worker.on_replica_change()  # first: the handshakes that go on now ask for routes at once
        self._tls.on_replica_change()

    def drain(self) -> None:
        """End keep-alive from now on."""
        self._worker.drain()

    def is_idle(self) -> bool:
        """Return whether no exchange and no handshake runs."""
        return self._worker.is_idle() and not self._tls.counters.handshaking

    def measurements(self) -> list[Family]:
        """Return the metrics of the data path and of TLS."""
        return [*self._worker.measurements(), *_tls_families(self._tls)]

    def failing_origins(self) -> list[FailingOrigin]:
        """Return origins that could not be reached in the last minute."""
        return self._worker.failing_origins()

    def take_recovered_origins(self) -> list[OriginIdentity]:
        """Return origins that were reached again since this was last called."""
        return self._worker.take_recovered_origins()

    def note_recovered_origins(self, origins: Sequence[OriginIdentity]) -> None:
        """Note that another worker reached these origins again."""
        self._worker.note_recovered_origins(origins)

    def certificates(self) -> CertificateUse:
        """Return how many certificates can be used, of those that clients asked for."""
        use = self._tls.review_certificates()
        if not use.unusable:
            return use
        return replace(use, lacks_key=is_key_missing(self._keyring, self._reader.sample_certificates()))

    def take_traffic(self) -> TrafficReport:
        """Return what was counted for each domain since this was last called."""
        return self._worker.take_traffic()

    def close(self) -> None:
        """Close TLS, the connections and the replica."""
        self._tls.close()
        self._worker.close()
        self._reader.close()


def compose(settings: Settings) -> Service:
    """Compose the edge's data path.

    Raises: `OperatorError` when the master key cannot be read.
    """
    return EdgeService(settings, ReplicaReader(replica_path(settings.state_dir)), asyncio.get_running_loop())


def _tls_families(tls: TlsShared) -> list[Family]:
    counters = tls.counters
    failed: dict[Labels, list[float]] = {(failure.value,): [float(count)] for failure, count in counters.failed.items()}
    return [
        Family.of("frontage_edge_tls_handshakes", "Handshakes that succeeded.", "counter", counters.handshakes),
        Family.of("frontage_edge_tls_resumed", "Of these, resumed sessions.", "counter", counters.resumed),
        Family.of("frontage_edge_tls_handshaking", "Connections now without TLS.", "gauge", counters.handshaking),
        Family.of("frontage_edge_tls_held", "Handshakes held for a certificate.", "counter", counters.held),
        Family.of("frontage_edge_tls_held_now", "Handshakes now held.", "gauge", tls.held_now),
        Family.of("frontage_edge_tls_context_builds", "Contexts built.", "counter", counters.context_builds),
        Family.of("frontage_edge_tls_cache_hits", "Contexts found in the cache.", "counter", counters.cache_hits),
        Family("frontage_edge_tls_failures", "Handshakes that failed.", "counter", ("reason",), samples=failed),
        *tls.certificate_ends(),
    ]
