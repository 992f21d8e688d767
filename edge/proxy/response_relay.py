"""A response on its way from an origin to the client: interim and final heads, the body, the tunnel behind a 101.

How the body is framed is `edge.http.response_body`'s. What the client does not take pauses the origin; bodies are never
accumulated. The ends are `edge.proxy.exchange`'s.
"""

from __future__ import annotations

import operator
from typing import Final

from edge.http import request_ids, response, upgrade
from edge.http.compression import compress
from edge.http.error_responses import ORIGIN_INVALID, Rejected
from edge.http.incomplete import check_incomplete_response
from edge.http.response import ResponseHead
from edge.http.response_body import ResponseBody
from edge.proxy.exchange_states import BODY, FINISHED, SENT, TUNNEL
from edge.proxy.request_relay import RequestRelay
from edge.routing import root_redirects
from edge.routing.response_policy import add_fields
from edge.routing.response_rewriting import rewrite, rewrite_interim
from edge.transport.deferred_work import BYTES_AT_ONCE, INTERIM_BYTES_AT_ONCE
from edge.upstream.connection import UpstreamConnection
from edge.upstream.response_memory import MAX_REMEMBERED_BYTES, shape_of

# Origins send more than clients may: Set-Cookie and policies.
MAX_RESPONSE_HEAD_BYTES: Final = 65_536
# RFC 8297 and RFC 9110 §15.2 foresee a few; a storm of them is an attack on the client.
MAX_INTERIM_RESPONSES: Final = 32


class ResponseRelay(RequestRelay):
    """The response's half of an exchange, on top of the request's. `Exchange` sets all fields."""

    __slots__ = (
        "_client_keeps_alive",
        "_has_requested_other_root",
        "_interim_count",
        "_is_deferred",
        "_is_half_closed",
        "_lost_in_order",
        "_response",
        "_response_body",
        "_response_head",
        "answered_at",
        "status",
    )

    status: int  # 0 until a response's head went down, or a refusal is to go in its place
    answered_at: float  # the final head came; 0.0 too when all of the answer came with it
    _client_keeps_alive: bool
    _has_requested_other_root: bool  # for the other form of the root
    _interim_count: int
    _is_half_closed: bool  # the tunnel
    _is_deferred: bool  # the relay of the response, to a later turn of the loop
    _lost_in_order: bool | None  # how the upstream connection ended while the relay was deferred
    _response_head: bytes  # what came of a head not yet complete
    _response: ResponseHead | None
    _response_body: ResponseBody | None  # unless all of it came with the head

    # The response's head ----------------------------------------------------------------------------------

    def on_upstream_data(self, data: bytes) -> None:
        """Relay bytes of the response, or of the tunnel."""
        if self.phase is BODY:
            self._relay_body(data)
        elif self.phase is TUNNEL:
            timeouts = self._context.timeouts
            self.client.set_deadline(timeouts.body if self._is_half_closed else timeouts.tunnel)
            self.client.write(data)
            if len(data) >= BYTES_AT_ONCE:
                self._defer()
        else:
            try:
                self._read_head(data)
            except Rejected as error:
                if self._upstream is not None and self.reused:  # it may be what followed the response before
                    self._upstream.note_unsolicited_bytes()
                self._fail_with(error.response, error.reason)

    def _read_head(self, data: bytes) -> None:
        upstream = self._upstream
        # A response before the request's end: the rest of the request cannot be trusted to arrive, nor be skipped.
        keep_alive = self.head.fields.keep_alive and self.request_is_complete and not self._context.is_draining
        if upstream is not None and self.head.minor and not self._response_head:
            last = upstream.last_response
            if last is not None:
                end = len(last[0])
                if data[:end] == last[0] and last[1] is keep_alive and last[2] is (self.head.method == b"HEAD"):
                    self._client_keeps_alive = keep_alive
                    self._respond(last[3], last[4], data[end:])
                    return
            raw, end_of_head, rest = data.partition(b"\r\n\r\n")
            self._client_keeps_alive = keep_alive
            if end_of_head and self._respond_as_before(raw, rest, upstream):
                return
        searched = max(0, len(self._response_head) - 3) if data else 0
        interim_bytes = 0
        data = self._response_head + data
        self._response_head = b""
        while True:
            end = data.find(b"\r\n\r\n", searched) + 4
            if end < 4 or end > MAX_RESPONSE_HEAD_BYTES:
                check_incomplete_response(data, searched, MAX_RESPONSE_HEAD_BYTES)
                self._response_head = data
                return
            raw, data, searched = data[:end], data[end:], 0
            answer = response.parse(raw, self.head.method)
            if answer.idle_seconds:
                self._context.dispatcher.note_stated_idle_time(self.route.origin, answer.idle_seconds)
            if answer.status >= 200 or answer.status == 101:
                is_redirect = 300 < answer.status < 309
                if is_redirect and upstream is not None and self._request_other_root(answer, upstream, data):
                    return
                self._respond(answer, self._rewrite(answer, raw, upstream, keep_alive=keep_alive), data)
                return
            self._relay_interim(answer)
            if not data:
                return
            interim_bytes += end
            if interim_bytes >= INTERIM_BYTES_AT_ONCE:
                self._response_head = data
                self._defer()
                return

    def _respond_as_before(self, raw: bytes, data: bytes, upstream: UpstreamConnection) -> bool:
        """Respond with the head, if it is like those that the origin sent before; `data` follows its empty line."""
        if len(raw) > MAX_REMEMBERED_BYTES:
            return False
        head, route, client, keep_alive = self.head, self.route, self.client, self._client_keeps_alive
        is_for_head = head.method == b"HEAD"
        scheme, date_field = client.scheme, self._context.date_field
        fill = client.fill_head if route.response_policy is None else operator.mod  # fields are added to text
        template, found = upstream.template, None
        if template is not None and template.is_for_head is is_for_head:
            found = template.rewrite(raw, head, route, scheme, date_field, keep_alive, fill)
        if found is None or template is None:
            for other in upstream.responses.find(shape_of(raw, is_for_head=is_for_head), ()):
                if other is template:
                    continue
                found = other.rewrite(raw, head, route, scheme, date_field, keep_alive, fill)
                if found is not None:
                    upstream.template = template = other
                    break
            else:
                return False
        answer, rewritten = found
        if template.is_repeatable:
            upstream.remember_last((raw + b"\r\n\r\n", keep_alive, is_for_head, answer, rewritten))
        self._respond(answer, rewritten, data)
        return True

    def _rewrite(
        self, answer: ResponseHead, raw: bytes, upstream: UpstreamConnection | None, *, keep_alive: bool
    ) -> bytes:
        context, request = self._context, self.head
        rewritten = rewrite(answer, request, self.route, self.client.scheme, context.date_field, keep_alive=keep_alive)
        self._client_keeps_alive = rewritten.keep_alive
        if upstream is not None and request.minor:
            upstream.remember_response(raw, request, answer, rewritten, keep_alive=keep_alive)
        return rewritten.head

    def _request_other_root(self, answer: ResponseHead, upstream: UpstreamConnection, data: bytes) -> bool:
        """Ask for the root's other form where the origin redirects to it. Return False where the redirect is passed on.

        An origin that redirects from either form to the other is asked twice, not for ever. `data` follows the head.
        """
        head, route = self.head, self.route
        asked = self._upstream_head.split(b" ", 2)[1]
        other = root_redirects.other_root(route, head, asked, answer, self.client.scheme)
        if other is None or not root_redirects.is_about_the_address(head, answer):
            return False
        self.client.forget_request()
        route.learnt_root.path = b"" if self._has_requested_other_root or other == route.base_path else other
        if self._has_requested_other_root or not root_redirects.can_be_repeated(head):
            return False
        self._has_requested_other_root = True
        self._upstream = None
        if answer.keep_alive and answer.body == len(data):
            if self._upstream_is_paused:
                upstream.transport.resume_reading()
            self._context.dispatcher.give_back(upstream, self._context.time(), answer.body != 0)
        else:
            self._context.dispatcher.drop(upstream)
        self._start_at(other)
        return True

    def _relay_interim(self, answer: ResponseHead) -> None:
        self._interim_count += 1
        if self._interim_count > MAX_INTERIM_RESPONSES:
            raise Rejected(ORIGIN_INVALID)
        self.client.set_deadline(self._progress_timeout())
        if self.head.minor:  # RFC 9110 §15.2: never to an HTTP/1.0 client
            self.client.write_interim(rewrite_interim(answer, self.head, self.route, self.client.scheme))

    def _respond(self, answer: ResponseHead, sent: bytes, data: bytes) -> None:
        """Send the final head to the client; `data` follows it."""
        if answer.status == 101:
            self._open_tunnel(answer, sent, data)
            return
        policy = self.route.response_policy
        compressed = None
        if policy is not None:
            sent = self._with_id(add_fields(sent, policy, self.client.scheme))
            if policy.compression != "off":
                sent, compressed = compress(sent, answer, self.head, policy.compression)
        self._response = answer
        self.status = answer.status
        if answer.body == len(data) and compressed is None:  # by far the most frequent
            if self._client_keeps_alive:
                self.client.write_head(sent, data)
            else:
                self.client.write_last(sent, data)
            self._complete(True)
            return
        self.phase = self.phase.on_respond
        self.answered_at = self._context.time()
        fields = self.head.fields
        self._response_body = compressed or ResponseBody(
            answer.body, self.head.minor, takes_trailers=fields.takes_trailers
        )
        self._relay_body(data, sent)

    def _with_id(self, head: bytes) -> bytes:
        """Return the head with the request's id, where edges state it: all routes have a policy then."""
        return request_ids.stated(head, self.client.request_id) if self._context.states_request_ids else head

    # The response's body, and the tunnel ------------------------------------------------------------------

    def _relay_body(self, data: bytes, head: bytes = b"") -> None:
        """Send more of the body to the client; the head first, if there is one."""
        body = self._response_body
        assert body is not None
        try:
            framed = body.frame(data)
        except Rejected:
            if head:
                self.client.write_head(head, b"")
            self._break_off()
            return
        if not body.is_complete:
            self.client.set_deadline(self._progress_timeout())
        if head:
            self.client.write_head(head, framed)
        elif framed:
            self.client.write(framed)
        if body.is_complete:
            if body.trailers:
                self.client.write_trailers(body.trailers)
            self._complete(not body.has_excess)
        elif body.has_more or len(data) >= BYTES_AT_ONCE:
            self._defer()

    def _defer(self) -> None:
        """Give up the loop before more of the response is relayed."""
        if self._upstream is not None:
            self._upstream.transport.pause_reading()
        if not self._is_deferred:
            self._is_deferred = True
            self._lost_in_order = None
            self._context.deferred.add(self._resume_relay)

    def _resume_relay(self) -> None:
        self._is_deferred = False
        if self.phase is FINISHED:
            return
        if self._upstream is not None and not self._upstream_is_paused:
            self._upstream.transport.resume_reading()
        if self.phase is SENT or (self._response_body is not None and self._response_body.has_more):
            self.on_upstream_data(b"")
        if self._lost_in_order is not None and not self._is_deferred and self.phase is not FINISHED:
            self.on_upstream_lost(in_order=self._lost_in_order)

    def _open_tunnel(self, answer: ResponseHead, sent: bytes, data: bytes) -> None:
        if not upgrade.is_offered(answer.upgrade, self.head.fields.upgrade):
            raise Rejected(ORIGIN_INVALID)
        self._response = answer
        self.status = answer.status
        self.phase = self.phase.on_switch
        self.answered_at = self._context.time()
        self.client.set_deadline(self._context.timeouts.tunnel)
        self.client.write_head(self._with_id(sent), data)
        self.client.on_tunnel()

    def _progress_timeout(self) -> float:
        """Return how many seconds to wait for the next sign of progress."""
        timeouts = self._context.timeouts
        if self.phase is SENT:
            return timeouts.origin if self.request_is_complete else timeouts.body
        return timeouts.tunnel if self.phase is TUNNEL and not self._is_half_closed else timeouts.body

    def on_client_full(self) -> None:
        """Relay no more: the client does not read."""
        self._upstream_is_paused = True
        self.client.set_deadline(self._context.timeouts.body)
        if self._upstream is not None:
            self._upstream.transport.pause_reading()

    def on_client_ready(self) -> None:
        """Relay again."""
        self._upstream_is_paused = False
        if self._upstream is not None:
            self.client.set_deadline(self._progress_timeout())
            if not self._is_deferred:
                self._upstream.transport.resume_reading()

    # By `Exchange` ----------------------------------------------------------------------------------------

    def _complete(self, reusable: bool) -> None:
        """End the exchange: the response went down to its last byte. `reusable`: none came beyond it."""
        raise NotImplementedError

    def _break_off(self) -> None:
        """End the exchange so that the client sees that the response is incomplete."""
        raise NotImplementedError
