"""The edge's own error responses, with what a worker knows: the time, and the application's own error page."""

from __future__ import annotations

from edge.http.error_responses import ErrorResponse, render
from edge.http.request import RequestHead
from edge.proxy.worker_context import WorkerContext


def render_refusal(
    worker: WorkerContext,
    refusal: ErrorResponse,
    head: RequestHead | None,
    raw: bytes,
    request_id: str,
    *,
    close: bool,
) -> bytes:
    """Return the response to a request that is not forwarded.

    `head` is None for a request that could not be read; `raw` is what was received of it.
    """
    wants_html = b"text/html" in raw
    application_page = (
        worker.routes.error_page(head.fields.host) if wants_html and refusal.status >= 500 and head else None
    )
    return render(
        refusal,
        request_id=request_id,
        date_field=worker.date_field(),
        wants_html=wants_html,
        head_only=head.method == b"HEAD" if head is not None else raw.startswith(b"HEAD "),
        close=close,
        application_page=application_page,
    )
