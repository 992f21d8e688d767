"""The zone of delegated challenges at a name server of the operator's, written by updates (RFC 2136).

For operators who run name servers already; where edges answer the zone themselves (`edge.dns`), none is written.
"""

from __future__ import annotations

from collections.abc import Collection

import dns.name
import dns.rcode

from common.dynamic_updates import KeyRefused, ServerSilent, new_update, read_key, send_update
from common.setting_values import DnsUpdateTarget
from monitor.certificates.issuer import IssuanceFailed

_TTL_SECONDS = 0  # a domain's order and its wildcard's may run at once: neither is to see a resolver's older answer


class ChallengeZone:
    """Writes TXT records of running orders. One instance per process."""

    def __init__(self, zone: str, target: DnsUpdateTarget) -> None:
        self._zone = dns.name.from_text(zone)
        self._target = target
        self._key = read_key(target.key_name, target.secret)

    async def write(self, label: str, values: Collection[str]) -> None:
        """Have the name server answer these values at the label, none to end it.

        Raises: `IssuanceFailed`, after which the CA is asked nothing.
        """
        name = dns.name.from_text(label, self._zone)
        update = new_update(self._zone.to_text(), self._key)
        update.delete(name, "TXT")
        for value in values:
            update.add(name, _TTL_SECONDS, "TXT", value)
        try:
            code = await send_update(update, self._target.server)
        except (KeyRefused, ServerSilent) as error:
            words = f"the name server of FRONTAGE_ACME_DNS_UPDATE took no record: {error}"
            raise IssuanceFailed(words, kind="unavailable") from error
        if code != dns.rcode.NOERROR:
            words = f"the name server of FRONTAGE_ACME_DNS_UPDATE answered {dns.rcode.to_text(code)}"
            raise IssuanceFailed(words, kind="unavailable")
