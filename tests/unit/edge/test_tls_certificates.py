from __future__ import annotations

import base64
import errno
import math
import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from common.secrets import key_id_of, load_keyring
from edge.replica.certificate_keys import CertificateUse, key_identity
from edge.tls.certificate_ends import end_families
from edge.tls.certificates import BuildBudget, CertificateCache, Missing
from edge.tls.failures import Failure, answer_to
from tests.tls_parts import MemoryReplica, keyring, the_ca


def cache_over(
    replica: MemoryReplica, capacity: int = 8, now: Callable[[], float] = time.monotonic
) -> CertificateCache:
    return CertificateCache(replica, keyring(), capacity=capacity, now=now)


@pytest.fixture
def replica() -> MemoryReplica:
    return MemoryReplica()


def test_an_unknown_name_never_builds() -> None:
    cache = cache_over(MemoryReplica())
    assert cache.find("a.example") is Missing.ABSENT
    assert cache.build("a.example") is Missing.ABSENT


def test_a_context_is_kept_over_changes_that_are_not_its_own(replica: MemoryReplica) -> None:
    replica.put_certificate("a.example")
    cache = cache_over(replica)
    assert cache.find("a.example") is Missing.UNBUILT
    context = cache.build("a.example")
    replica.put_certificate("b.example")
    assert isinstance(context, ssl.SSLContext)
    assert cache.find("a.example") is context


def test_another_record_needs_another_context_and_a_removed_one_none(replica: MemoryReplica) -> None:
    replica.put_certificate("a.example")
    cache = cache_over(replica)
    old = cache.build("a.example")
    replica.put_certificate("a.example")
    assert cache.find("a.example") is Missing.UNBUILT
    assert cache.build("a.example") is not old
    replica.remove("certificate", "a.example")
    assert cache.find("a.example") is Missing.ABSENT


def test_a_domain_that_moved_to_another_application_needs_another_context(replica: MemoryReplica) -> None:
    replica.put_certificate("a.example")
    replica.put("route", "power/a.example", {"application_id": "one"})
    cache = cache_over(replica)
    old = cache.build("a.example")
    replica.put("route", "power/a.example", {"application_id": "one", "redirect_to": None})
    assert cache.find("a.example") is old
    replica.put("route", "power/a.example", {"application_id": "two"})
    assert cache.find("a.example") is Missing.UNBUILT


def test_old_contexts_are_discarded_however_often_they_are_used(replica: MemoryReplica) -> None:
    now = 1000.0
    cache = cache_over(replica, now=lambda: now)
    for domain, now in (("a.example", 1000.0), ("b.example", 1060.0)):  # noqa: B007 - read by the lambda
        replica.put_certificate(domain)
        cache.build(domain)
        cache.find("a.example")
    cache.discard_older_than(30.0)
    assert cache.find("a.example") is Missing.UNBUILT
    assert isinstance(cache.find("b.example"), ssl.SSLContext)


def test_the_least_recently_used_context_goes_first(replica: MemoryReplica) -> None:
    cache = cache_over(replica, capacity=2)
    for domain in ("a.example", "b.example", "c.example"):
        replica.put_certificate(domain)
        cache.build(domain)
        cache.find("a.example")
    assert isinstance(cache.find("a.example"), ssl.SSLContext)
    assert cache.find("b.example") is Missing.UNBUILT


def test_a_record_that_cannot_be_used_is_remembered_until_it_changes(replica: MemoryReplica) -> None:
    cache = cache_over(replica)
    chain, _ = the_ca().issue("a.example")
    _, foreign_key = the_ca().issue("a.example")
    replica.put_certificate_of("a.example", chain, foreign_key)
    assert cache.build("a.example") is Missing.UNUSABLE
    assert cache.find("a.example") is Missing.UNUSABLE
    replica.put_certificate("a.example")
    assert isinstance(cache.build("a.example"), ssl.SSLContext)


@pytest.fixture
def swapped(tmp_path: Path) -> tuple[MemoryReplica, CertificateCache, Path]:
    """A certificate sealed under a key whose file another has replaced; the right one lies beside it."""
    key_file = tmp_path / "master.key"
    sealing = load_keyring(key_file, create=True)
    replica = MemoryReplica()
    chain, key = the_ca().issue("a.example")
    envelope = sealing.seal(key, key_identity("a.example"))
    replica.put("certificate", "a.example", {"chain": chain, "private_key": base64.b64encode(envelope).decode()})
    key_file.rename(tmp_path / "right.key")
    key_id = key_id_of(envelope).hex()
    key_file.write_text(f"{key_id} {base64.b64encode(bytes(32)).decode()}\n")
    return replica, CertificateCache(replica, load_keyring(key_file), capacity=8, now=time.monotonic), key_file


def test_a_key_that_does_not_open_is_tried_again_once_the_key_file_is_another(
    swapped: tuple[MemoryReplica, CertificateCache, Path],
) -> None:
    replica, cache, key_file = swapped
    assert cache.build("a.example") is Missing.UNUSABLE
    assert cache.find("a.example") is Missing.UNUSABLE
    replica.put("route", "power/other.example", {"application_id": "one"})
    assert cache.find("a.example") is Missing.UNUSABLE
    key_file.with_name("right.key").rename(key_file)
    assert cache.find("a.example") is Missing.UNBUILT
    assert isinstance(cache.build("a.example"), ssl.SSLContext)
    assert cache.review() == CertificateUse(usable=1)


def test_the_review_forgets_what_another_key_file_may_open(
    swapped: tuple[MemoryReplica, CertificateCache, Path],
) -> None:
    _, cache, key_file = swapped
    cache.build("a.example")
    assert cache.review() == CertificateUse(unusable=1, example="a.example")
    key_file.with_name("right.key").rename(key_file)
    assert cache.review() == CertificateUse()


def test_the_review_counts_unusable_certificates_until_their_records_change(replica: MemoryReplica) -> None:
    cache = cache_over(replica, capacity=200)
    for number in range(100):
        replica.put("certificate", f"{number}.example", {})
        cache.build(f"{number}.example")
    replica.put_certificate("good.example")
    cache.build("good.example")
    assert cache.review().unusable == 100
    for number in range(99):
        replica.remove("certificate", f"{number}.example")
    cache.review()
    assert cache.review() == CertificateUse(usable=1, unusable=1, example="99.example")


def test_ends_are_those_of_certificates_that_no_other_has_replaced(replica: MemoryReplica) -> None:
    cache = cache_over(replica)
    for domain in ("a.example", "b.example", "c.example"):
        replica.put_certificate(domain)
        cache.build(domain)
    replica.put("certificate", "broken.example", {})
    cache.build("broken.example")
    in_thirty_days = pytest.approx(time.time() + 30 * 86_400, abs=3600)
    assert cache.ends(time.time()) == [in_thirty_days] * 3
    replica.put_certificate("b.example")
    replica.remove("certificate", "c.example")
    assert cache.ends(time.time()) == [in_thirty_days]
    assert len(cache.ends(time.time() - 30 * 86_400)) == 3  # far from their end nothing is compared


def test_certificates_are_counted_by_days_left_and_the_first_end_is_shown() -> None:
    now = 1_000_000.0
    by_days, first = end_families([now + days * 86_400 for days in (-1, 0.5, 2, 2, 30, 31, math.inf)], now)
    counts = {span: count for (span,), (count,) in by_days.samples.items()}
    assert counts == {"ended": 1, "0-1": 1, "1-3": 2, "3-7": 0, "7-30": 1, "30-": 2}
    assert first.samples == {(): [now - 86_400]}
    assert end_families([], now)[1].samples == {}


def test_a_failure_of_the_machine_is_not_remembered(monkeypatch: pytest.MonkeyPatch, replica: MemoryReplica) -> None:
    replica.put_certificate("a.example")
    cache = cache_over(replica)
    with monkeypatch.context() as patched:
        patched.setattr(os, "memfd_create", lambda *_: _raise(OSError(errno.EMFILE, "Too many open files")))
        assert cache.build("a.example") is Missing.UNUSABLE
    assert cache.find("a.example") is Missing.UNBUILT
    assert isinstance(cache.build("a.example"), ssl.SSLContext)


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("use", "is_failing"),
    [
        (CertificateUse(), False),
        (CertificateUse(usable=1, unusable=5), False),
        (CertificateUse(usable=6, unusable=6), True),
        (CertificateUse(usable=700, unusable=600), False),
        (CertificateUse(usable=7, unusable=1, lacks_key=True), True),
    ],
)
def test_single_damaged_records_do_not_make_a_worker_fail(use: CertificateUse, *, is_failing: bool) -> None:
    assert use.is_failing is is_failing


def test_a_key_sealed_for_another_name_does_not_open(replica: MemoryReplica) -> None:
    replica.put_certificate("b.example")
    row = replica.get("certificate", "b.example")
    assert row is not None
    replica.put("certificate", "a.example", row)
    assert cache_over(replica).build("a.example") is Missing.UNUSABLE


@pytest.mark.parametrize("row", [{}, {"chain": 1, "private_key": "eA=="}, {"chain": "", "private_key": None}])
def test_a_record_of_another_shape_is_one_that_cannot_be_used(row: dict[str, Any], replica: MemoryReplica) -> None:
    replica.put("certificate", "a.example", row)
    assert cache_over(replica).build("a.example") is Missing.UNUSABLE


def test_building_leaves_no_descriptor_open(replica: MemoryReplica) -> None:
    replica.put_certificate("a.example")
    cache = cache_over(replica)
    cache.build("a.example")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        cache.build("a.example")
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_budget_allows_a_burst_then_a_steady_rate() -> None:
    budget = BuildBudget(per_second=100, burst=3)
    assert [budget.take(50.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    wait = budget.take(50.0)
    assert 0 < wait <= 0.0101
    assert budget.take(50.0 + wait) == 0.0
    assert budget.take(50.0 + wait) > 0
    assert [budget.take(60.0) for _ in range(4)][:3] == [0.0, 0.0, 0.0]


def test_every_failure_about_a_name_gets_the_same_answer() -> None:
    names = (
        Failure.NO_NAME,
        Failure.BAD_NAME,
        Failure.UNKNOWN_NAME,
        Failure.HOLD_LIMIT,
        Failure.HOLD_TIMEOUT,
    )
    assert {answer_to(failure) for failure in names} == {b"\x15\x03\x03\x00\x02\x02\x70"}
