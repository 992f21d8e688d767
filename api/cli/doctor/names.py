"""Checks of the DNS: the resolvers that are asked, and the targets that partners' names lead to."""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING

from api.cli.doctor.asking import ANSWER_SECONDS
from api.cli.doctor.findings import Finding, broken, from_error, note, ok
from common.errors import OperatorError
from common.host_ports import HostPort
from common.settings import Settings

if TYPE_CHECKING:
    from common.edge_probe import Reached

_TARGETS = {"FRONTAGE_POWER_TARGET": "power_target", "FRONTAGE_SSL_TARGET": "ssl_target"}


async def check_servers(settings: Settings) -> Finding:
    """Check that each of the configured DNS servers answers."""
    servers = resolvers_of(settings)
    if not servers:
        return broken("DNS servers", "none is configured", "set FRONTAGE_DNS_SERVERS")
    answers = await asyncio.gather(*map(_answers, servers))
    silent = [str(server) for server, answer in zip(servers, answers, strict=True) if not answer]
    if silent:
        seen = f"{', '.join(silent)} gave no answer in {ANSWER_SECONDS:g} seconds"
        return broken("DNS servers", seen, "set FRONTAGE_DNS_SERVERS to others")
    return ok("DNS servers", ", ".join(map(str, servers)))


def resolvers_of(settings: Settings) -> list[HostPort]:
    """Those that are set, or the system's."""
    import dns.exception
    import dns.resolver

    from common.host_ports import HostPort

    if settings.dns_servers:
        return list(settings.dns_servers)
    try:
        return [HostPort(str(server), 53) for server in dns.resolver.Resolver().nameservers]
    except dns.exception.DNSException:
        return []


async def _answers(server: HostPort) -> bool:
    """Whether the server answers at all; a refusal is an answer."""
    import dns.asyncquery
    import dns.exception
    import dns.message

    question = dns.message.make_query(".", "NS")
    try:
        await dns.asyncquery.udp(question, server.host, timeout=ANSWER_SECONDS, port=server.port)
    except (dns.exception.DNSException, OSError, ValueError):
        return False
    return True


async def check_targets(settings: Settings) -> list[Finding]:
    """Each target is asked over HTTP, as visitors of a domain that leads to it would."""
    unset = [name for name, field in _TARGETS.items() if getattr(settings, field) == getattr(Settings, field)]
    findings = []
    if unset:
        verb, remedy = ("name", "set them to names") if len(unset) > 1 else ("names", "set it to a name")
        seen = f"{' and '.join(unset)} still {verb} this machine only"
        findings.append(note("targets", seen, f"{remedy} whose DNS leads to your edges"))
    asked = [name for name in _TARGETS if name not in unset]
    return [*findings, *await asyncio.gather(*(_check_target(settings, name) for name in asked))]


async def _check_target(settings: Settings, variable: str) -> Finding:
    from common.edge_probe import Reached

    target = getattr(settings, _TARGETS[variable])
    try:
        addresses, reached = await _reach(settings, target)
    except OperatorError as error:
        return from_error("targets", error)
    if not addresses:
        remedy = f"give it the address of your edges, or set {variable} to a name that has it"
        return broken("targets", f"{target} has no address in the DNS", remedy)
    if reached is Reached.US:
        return ok("targets", f"{target} leads to an edge of this installation")
    described = "an unknown server" if reached is Reached.UNKNOWN else reached
    seen = f"requests for {target} ({', '.join(addresses)}) reach {described}, and no edge of this installation"
    remedy = f"let its DNS lead to the edges, and port 80 there to {settings.edge_http}; or set {variable}"
    return broken("targets", seen, remedy)


async def _reach(settings: Settings, target: str) -> tuple[list[str], Reached]:
    """Return the target's addresses, and the port at which requests arrive.

    That is port 80, or else where the edge of this machine listens.

    Raises: `OperatorError` without a master key, which identifies our edges.
    """
    from common.addresses import AddressPolicy
    from common.dns import Resolver
    from common.edge_probe import HttpEdgeProbe, Reached
    from common.secrets import load_keyring

    everywhere = [ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")]
    policy = AddressPolicy(everywhere, own_listeners=[])  # targets are the operator's own
    async with Resolver(settings.dns_servers, policy).open_pass() as questions:
        answers = [await questions.ask(target, "A"), await questions.ask(target, "AAAA")]
        addresses = [value for answer in answers for value in answer.values]
        reached = Reached.UNKNOWN
        if addresses:
            keyring = load_keyring(settings.key_file)
            for port in dict.fromkeys([80, settings.edge_http.port]):
                reached = await HttpEdgeProbe(keyring, policy, port=port).find(questions, target)
                if reached is Reached.US:
                    break
    return addresses, reached
