"""``python -m bench.lab``: the lab as a process of its own.

Prints one line of JSON: addresses (``origin``, ``dns``, ``zone``, ``sink``, ``partner``, ``provider``); ``key``, the
name and the secret of the key that signs updates of the zone; and ``powerdns``, the key and the URL of PowerDNS' API,
which is empty where PowerDNS is not installed. Serves until SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import asyncio
import signal

import orjson

from bench.lab.lab import Lab
from bench.lab.zone import load_records, parse_record


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lab", description=__doc__)
    parser.add_argument(
        "--record",
        action="append",
        default=[],
        metavar='"NAME TYPE VALUE"',
        help="a DNS record to start with; may be given several times",
    )
    records: list[str] = parser.parse_args().record
    for record in records:
        try:
            parse_record(record)
        except ValueError as error:
            parser.error(str(error))
    asyncio.run(_serve(records))


async def _serve(records: list[str]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Lab.start(has_powerdns=True) as lab:
        load_records(lab.zone, records)
        print(orjson.dumps(lab.addresses).decode(), flush=True)
        await stop.wait()


if __name__ == "__main__":
    main()
