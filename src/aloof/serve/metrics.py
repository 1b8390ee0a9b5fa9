"""What Prometheus reads: requests, latency, queue, rows, flagged rows, models, drift."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable
from typing import TYPE_CHECKING

from aloof._version import __version__
from aloof.exceptions import MissingExtraError

try:
    from prometheus_client import (
        CollectorRegistry,
        Counter,
        Gauge,
        GCCollector,
        Histogram,
        Info,
        PlatformCollector,
        ProcessCollector,
        generate_latest,
    )
except ImportError as error:
    raise MissingExtraError("prometheus-client", "serve", "The server") from error

if TYPE_CHECKING:
    from aloof.serve.slots import Slot

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


class Metrics:
    """The numbers of one server.

    Parameters
    ----------
    names
        Of the models.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.registry = own = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=own)
        Info("aloof_build", "What runs here.", registry=own).info({"version": __version__})
        self._requests = Counter(
            "aloof_requests", "Requests answered.", ["route", "status"], registry=own
        )
        self._seconds = Histogram(
            "aloof_request_seconds",
            "From the head of a request to its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=own,
        )
        self._rows = Counter("aloof_rows", "Rows or images scored.", ["model"], registry=own)
        self._flagged = Counter(
            "aloof_rows_flagged", "Those that were flagged.", ["model"], registry=own
        )
        self._suppressed = Counter(
            "aloof_rows_suppressed",
            "Those that would be flagged but for a rule of reviewers.",
            ["model"],
            registry=own,
        )
        self.batch_rows = Histogram(
            "aloof_batch_rows", "Rows scored together.", buckets=_ROWS, registry=own
        )
        self.batch_requests = Histogram(
            "aloof_batch_requests", "Requests scored together.", buckets=_ROWS, registry=own
        )
        self.batch_seconds = Histogram(
            "aloof_batch_seconds", "To score a batch.", buckets=_SECONDS, registry=own
        )
        self.queue_rows = Gauge("aloof_queue_rows", "Rows that wait.", registry=own)
        self.queue_limit = Gauge("aloof_queue_limit_rows", "That may wait.", registry=own)
        self.body_bytes = Gauge("aloof_body_bytes", "Of requests in memory.", registry=own)
        self._refused = Counter(
            "aloof_refused",
            "Requests refused for want of room or time.",
            ["status"],
            registry=own,
        )
        self.errors = Counter("aloof_errors", "Errors nobody expected.", registry=own)
        self._ready = Gauge(
            "aloof_model_ready", "1: it has passed its probes.", ["model"], registry=own
        )
        self._stale = Gauge(
            "aloof_model_stale",
            "1: what is in its folder cannot be used, and the former model answers.",
            ["model"],
            registry=own,
        )
        self._version = Gauge(
            "aloof_model_version", "The version in use.", ["model"], registry=own
        )
        self._loads = Counter(
            "aloof_model_loads", "Models read.", ["model", "result"], registry=own
        )
        self._drifts = Gauge(
            "aloof_drift",
            "Ways in which the latest rows differ from those of the training.",
            ["model"],
            registry=own,
        )
        self._drift = Gauge(
            "aloof_drift_by_difference",
            "The same, by what differs, such as units or shares.",
            ["model", "difference"],
            registry=own,
        )
        self._differences: dict[str, set[str]] = {}
        self._routes: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        counted = (self._rows, self._flagged, self._suppressed)
        self._counts = {n: [counter.labels(n) for counter in counted] for n in names}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        counter, histogram = self._routes.get((route, status), (None, None))
        if counter is None or histogram is None:
            counter, histogram = self._routes[route, status] = (
                self._requests.labels(route, str(status)),
                self._seconds.labels(route),
            )
        counter.inc()
        histogram.observe(seconds)
        if status in (408, 413, 429, 503):
            self._refused.labels(str(status)).inc()

    def scored(self, model: str, rows: int, flagged: int, suppressed: int) -> None:
        """Count rows."""
        for counter, n in zip(self._counts[model], (rows, flagged, suppressed), strict=True):
            if n:
                counter.inc(n)

    def batch(self, rows: int, requests: int, seconds: float) -> None:
        """Count a batch."""
        self.batch_rows.observe(rows)
        self.batch_requests.observe(requests)
        self.batch_seconds.observe(seconds)

    def loaded(self, slot: Slot, result: str) -> None:
        """Say how it went to read a model: "ok", "failed" or "same"."""
        if result != "same":
            self._loads.labels(slot.name, result).inc()
        self._ready.labels(slot.name).set(slot.served is not None)
        self._stale.labels(slot.name).set(bool(slot.problem) and slot.served is not None)
        if slot.served is not None:
            self._version.labels(slot.name).set(int(slot.served.version))

    def drifted(self, model: str, found: Iterable[str]) -> None:
        """Say in which ways the latest rows differ."""
        counts = Counts(found)
        known = self._differences.setdefault(model, set())
        known |= {*counts}
        self._drifts.labels(model).set(counts.total())
        for what in known:
            self._drift.labels(model, what).set(counts[what])

    def text(self) -> bytes:
        """Return all of it."""
        return generate_latest(self.registry)
