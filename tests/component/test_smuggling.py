"""The saved requests against a running edge: each is refused, or reaches the origin as one message (RFC 9112 §11.2).

`tests.unit.edge.test_oracle` replays them without sockets, in every split, and compares what they mean; here the bytes
an origin received over real connections, which it keeps for several clients, are counted and read strictly.
"""

from __future__ import annotations

from pathlib import Path

from tests.component.origins import StrictOrigin
from tests.component.peers import served
from tests.unit.edge.corpus import REQUESTS
from tests.unit.edge.oracle import check_spelling, read_requests


async def test_saved_requests_are_refused_or_reach_the_origin_as_one_message(tmp_path: Path) -> None:
    strict = StrictOrigin()
    before, wrong = 0, {}
    async with served(strict, tmp_path) as (_, proxy):
        for name, (stream, forwarded) in REQUESTS.items():
            client = await proxy.connect()
            client.writer.write(stream)
            client.writer.write_eof()
            answers = await client.rest()
            count = strict.served() - before
            before += count
            if count != forwarded or answers.count(b"x-origin: ") != forwarded:
                wrong[name] = (forwarded, count, answers)
    assert not wrong
    for machine in strict.machines:
        requests, _, problem = read_requests(machine.received)
        assert not problem
        assert sum(request.is_complete for request in requests) == machine._served
        for request in requests:
            check_spelling(request)
