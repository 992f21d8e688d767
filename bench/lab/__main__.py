"""``python -m bench.lab``: the lab as a process of its own.

Prints one line of JSON: addresses (``origin``, ``dns``, ``zone``, ``sink``, ``partner``, ``provider``); ``key``, the
name and the secret of the key that signs updates of the zone; ``powerdns``, the key and the URL of PowerDNS' API, which
is empty where PowerDNS is not installed; and ``rdap``, the URL of the bootstrap file. In a terminal, also the lines of
the handbook's walk that need them, ready to paste. Serves until SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys

import orjson

from bench.lab.lab import Lab
from bench.lab.zone import load_records, parse_record

_EXPIRED_DAYS = 30
_PASTED = """
For the terminal of `frontage up`:
  export FRONTAGE_DNS_SERVERS={dns}
For the third:
  ORIGIN={origin}"""


def main() -> None:
    """Run the lab until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m bench.lab", description=__doc__)
    parser.add_argument(
        "--record",
        action="append",
        default=[],
        metavar='"NAME TYPE VALUE"',
        help="a DNS record to start with; may be given several times",
    )
    parser.add_argument("--registered", action="append", default=[], metavar="DOMAIN", help="a domain of the registry")
    parser.add_argument("--expired", action="append", default=[], metavar="DOMAIN", help="one that has expired")
    arguments = parser.parse_args()
    records: list[str] = arguments.record
    for record in records:
        try:
            parse_record(record)
        except ValueError as error:
            parser.error(str(error))
    asyncio.run(_serve(records, arguments.registered, arguments.expired))


async def _serve(records: list[str], registered: list[str], expired: list[str]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Lab.start(has_powerdns=True) as lab:
        load_records(lab.zone, records)
        for name in registered:
            lab.rdap.register(name)
        for name in expired:
            lab.rdap.register(name, expires_in_days=-_EXPIRED_DAYS)
        print(orjson.dumps(lab.addresses).decode(), flush=True)
        if sys.stderr.isatty():
            print(_PASTED.format(**lab.addresses), file=sys.stderr)
        await stop.wait()


if __name__ == "__main__":
    main()
