"""The condition of this edge: whether its key opens the certificates that it holds, and whether it follows the feed.

The worst of what is wrong counts, with the remedy for the operator (`common.db.edge_nodes.Condition`).
"""

from __future__ import annotations

from pathlib import Path

from common.db.edge_nodes import SERVING, Condition
from edge.replica.catching_up import HeldCopy
from edge.replica.certificate_keys import CertificateUse


def condition_of(
    *,
    key_file: Path,
    lacks_key: bool,
    use: CertificateUse,
    write_error: str | None,
    replica: Path,
    held: HeldCopy | None,
    admin: str,
    lags: bool = False,
) -> Condition:
    """Return the condition of this edge.

    `use`: what the workers make of the certificates. `write_error`: why the replica could not be written the last time.
    `admin`: the address of the admin port. `lags`: the standby that is followed is behind the primary.
    """
    if lacks_key or use.lacks_key:
        return Condition(
            "unusable",
            f"the master key file {key_file} does not open this database's certificates, so TLS handshakes fail:"
            " where the API runs, write one with `frontage master-key export --role edge FILE`, and copy it here;"
            " it is used at once",
        )
    if use.is_failing:
        return Condition(
            "unusable",
            f"a worker cannot use {use.unusable} of the {use.unusable + use.usable} certificates that it was asked for,"
            f" such as that of {use.example}, so most TLS handshakes fail: its log has the reasons",
        )
    if write_error is not None:
        return Condition(
            "stuck",
            f"cannot write {replica} ({write_error}), and serves what it last knew: free space on that disk,"
            " then it catches up by itself",
        )
    if held is not None:
        return Condition(
            "held",
            f"the database has lost {held.removed_routes} of {held.routes} routes, and the edge still serves them:"
            f" restore it, or agree with `curl -X POST http://{admin}/replica/accept`",
        )
    if lags:
        return Condition(
            "stuck",
            "follows a standby that is behind the primary, and serves what the standby knows: see whether the server of"
            " FRONTAGE_FEED_URL replicates (pg_stat_replication on the primary)",
        )
    return SERVING
