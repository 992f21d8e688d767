"""Renders measurements in Prometheus' text format.

A separate module, so that only processes that are scraped load the library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from common.metrics import Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render(families: Iterable[Family], *, with_process: bool = False) -> bytes:
    """Render families in Prometheus' text format, to be sent as `CONTENT_TYPE`.

    `with_process` adds this process' CPU time, memory and descriptors.
    """
    registry = CollectorRegistry(auto_describe=False)
    if with_process:
        ProcessCollector(registry=registry)
    registry.register(_FamilyCollector(list(families)))
    return generate_latest(registry)


class _FamilyCollector(Collector):
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Convert the families to the library's types."""
        return map(_to_prometheus, self._families)


def _to_prometheus(family: Family) -> Metric:
    if family.kind == "histogram":
        histogram = HistogramMetricFamily(family.name, family.help, labels=family.label_names)
        bounds = [*(repr(float(bound)) for bound in family.bounds), "+Inf"]
        for labels, (*counts, total) in family.samples.items():
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            histogram.add_metric(labels, buckets, total)
        return histogram
    single_number = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = single_number(family.name, family.help, labels=family.label_names)
    for labels, (number,) in family.samples.items():
        metric.add_metric(labels, number)
    return metric
