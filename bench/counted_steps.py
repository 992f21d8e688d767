"""The steps of a forwarded request one after another, for `bench.request_steps`, which has their instructions counted.

``python -m bench.counted_steps``: the data path of one worker, composed as in production, between a client and an
origin that are objects of this process: no socket, no event loop. For each step it prints the step's name and waits for
a line, takes the step `REQUESTS` times, prints a line and waits again; an empty line is the end.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from bench import answers, heads
from bench.cases import KB
from bench.counted_worker import MemoryReader
from bench.instruction_cases import HOST
from common.secrets import load_keyring
from common.settings import load
from edge.http import request, response
from edge.http.forwarded import Client
from edge.http.head_template import HeadTemplate
from edge.proxy.access_log import AccessLog
from edge.proxy.client_connection import ClientConnection
from edge.proxy.recent_requests import RecentRequests
from edge.proxy.request_memory import RequestMemory
from edge.proxy.worker_context import WorkerContext
from edge.routing.respond import Forward, respond
from edge.routing.response_rewriting import rewrite
from edge.routing.response_template import ResponseTemplate
from edge.upstream.connection import UpstreamConnection

REQUESTS: Final = 256
_ANSWER: Final = answers.same()[0]
_ANSWERS: Final = answers.varied()[:REQUESTS]
EMPTY: Final = "nothing"
"""The step that costs what going round the requests does."""
_ADDRESS: Final = "127.0.0.1"
_END: Final = b"\r\n\r\n"


class DiscardingTransport:
    """A transport that drops what is written to it."""

    def write(self, data: bytes) -> None:
        """Drop the data."""

    def abort(self) -> None:
        """Do nothing."""

    def is_closing(self) -> bool:
        """Return False: it stays open."""
        return False

    def get_extra_info(self, name: str) -> object:
        """Return the peer's name; None for anything else."""
        return (_ADDRESS, 1) if name == "peername" else None


class RequestSteps:
    """One worker, and requests whose header blocks all differ, unless stated otherwise."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        settings = load()
        reader = MemoryReader(settings.state_dir / "records.json")
        self._worker = WorkerContext(settings, reader, load_keyring(settings.key_file), loop)
        self._client = Client(_ADDRESS, secure=False, trusted_proxies=())
        self._raws = heads.varied(HOST, KB)[:REQUESTS]
        self._same = heads.same(HOST, KB)[0]
        self._heads = [request.parse(raw, self._worker.limits) for raw in self._raws]
        self._forwards = [self._forward(head) for head in self._heads]
        template = HeadTemplate.learn(self._raws[0], self._raws[1], self._heads[1])
        assert template is not None
        self._template = template
        self._answer_heads = [answer.partition(_END)[0] for answer in _ANSWERS]
        self._parsed = [response.parse(raw + _END, b"GET") for raw in self._answer_heads]
        before, raw, parsed = self._answer_heads[0], self._answer_heads[1], self._parsed[1]
        answer_template = ResponseTemplate.learn(before, raw, parsed, self._heads[0], frozenset())
        assert answer_template is not None
        self._answer_template = answer_template
        self._memory = RequestMemory(RecentRequests(self._worker.routes, self._worker.limits, None), self._client, "")
        for raw, forward in zip(self._raws[:16], self._forwards, strict=False):  # it learns
            if not self._memory.recall(raw):
                self._memory.remember(raw, forward)
        transport = cast("asyncio.Transport", DiscardingTransport())
        self._connection = ClientConnection(self._worker, secure=False)
        self._connection.connection_made(transport)
        self._upstream = UpstreamConnection(self._forwards[0].route.origin, lambda _: None)
        self._upstream.connection_made(transport)

    def _forward(self, head: request.RequestHead) -> Forward:
        """Decide what becomes of the request, which is to be forwarded."""
        worker = self._worker
        outcome = respond(head, worker.lookup, worker.listening_http, self._client, "")
        assert isinstance(outcome, Forward)
        return outcome

    def lend_upstream(self) -> None:
        """Make the one upstream connection ready for the first request, as after an earlier one."""
        dispatcher = cast("Any", self._worker.exchanges.dispatcher)  # a pool has no public way in for a connection
        dispatcher._pool.request(self._upstream.origin, None)
        dispatcher._pool.give_back(self._upstream.origin, self._upstream, dispatcher.now)

    def all(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield each step's name and the function that takes it `REQUESTS` times."""
        yield EMPTY, self._empty
        yield "miss: parse the head", self._parse
        yield "miss: find the route, decide, compose", self._respond
        yield "hit: read the head by its template", self._read
        yield "hit: compose the head for the origin", self._compose
        yield "hit: all of it, with the route and the path", self._recall
        for _ in range(2):  # the origin's connections learn
            self._whole_varied()
        yield "response, miss: parse the head", self._parse_answers
        yield "response, miss: rewrite it for the client", self._rewrite_answers
        yield "response, hit: read the head by its template", self._read_answers
        yield "response, hit: read and rewrite it", self._rewrite_by_template
        yield "whole exchange, every response different", self._whole_varied
        yield "whole exchange", self._whole
        yield "whole exchange, the same head", self._whole_same
        self._worker.access_log = AccessLog(os.devnull, node="bench", sample=1.0, user_agent=True, random=lambda: 0.0)
        yield "whole exchange, with the access log", self._whole

    def _empty(self) -> None:
        for _ in self._raws:
            pass

    def _parse(self) -> None:
        limits = self._worker.limits
        for raw in self._raws:
            request.parse(raw, limits)

    def _respond(self) -> None:
        for head in self._heads:
            self._forward(head)

    def _read(self) -> None:
        for raw in self._raws:
            self._template.read(raw)

    def _compose(self) -> None:
        for forward in self._forwards:
            forward.surroundings.compose(forward.head, forward.head.target, b"")

    def _recall(self) -> None:
        for raw in self._raws:
            assert self._memory.recall(raw)

    def _parse_answers(self) -> None:
        for raw in self._answer_heads:
            response.parse(raw + _END, b"GET")

    def _rewrite_answers(self) -> None:
        head, route, date_field = self._heads[0], self._forwards[0].route, self._worker.date_field
        for answer in self._parsed:
            rewrite(answer, head, route, b"http", date_field, keep_alive=True)

    def _read_answers(self) -> None:
        for raw in self._answer_heads:
            self._answer_template.read(raw)

    def _rewrite_by_template(self) -> None:
        head, route, date_field = self._heads[0], self._forwards[0].route, self._worker.date_field
        for raw in self._answer_heads:
            self._answer_template.rewrite(raw, head, route, b"http", date_field, True)

    def _whole_varied(self) -> None:
        for raw, answer in zip(self._raws, _ANSWERS, strict=True):
            self._connection.data_received(raw)
            self._upstream.data_received(answer)

    def _whole(self) -> None:
        for raw in self._raws:
            self._connection.data_received(raw)
            self._upstream.data_received(_ANSWER)

    def _whole_same(self) -> None:
        for _ in self._raws:
            self._connection.data_received(self._same)
            self._upstream.data_received(_ANSWER)


def main() -> None:
    """Take the steps one after another, as the counting process asks for them."""
    loop = asyncio.new_event_loop()
    steps = RequestSteps(loop)
    steps.lend_upstream()
    for name, step in steps.all():
        step()  # what is remembered is in memory, and specialised
        print(name, flush=True)
        sys.stdin.readline()
        step()
        print("done", flush=True)
        sys.stdin.readline()
    print(flush=True)
    sys.stdin.readline()  # until it is ended


if __name__ == "__main__":
    main()
