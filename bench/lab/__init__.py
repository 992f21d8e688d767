"""The lab: an origin, a DNS zone and a webhook sink on loopback, for the demo, the tests and the benchmarks.

As a process it is ``python -m bench.lab``; in a test it is ``async with Lab.start() as lab``. Nothing here
knows Frontage: the lab is the world Frontage lives in, seen from outside.
"""

from bench.lab.lab import Lab
from bench.lab.origin import LabOrigin
from bench.lab.server import NameServer
from bench.lab.sink import WebhookSink
from bench.lab.zone import Behaviour, Zone

__all__ = ["Behaviour", "Lab", "LabOrigin", "NameServer", "WebhookSink", "Zone"]
