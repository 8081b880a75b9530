# SPDX-License-Identifier: Apache-2.0
"""Metrics in Prometheus' format: what an operator watches to know that the promises are kept, and what they cost.

Each process counts for itself and shows its own numbers on [DEFAULT]metrics_port; workers beyond the first use the
ports after it.
"""

from __future__ import annotations

from oslo_config import cfg
from oslo_log import log
from prometheus_client import Counter, Gauge, Histogram, start_http_server

LOG = log.getLogger(__name__)

TRANSACTION_RETRIES = Counter(
    "nova_lite_transaction_retries_total", "Transactions that were run again after a conflict or a lost connection"
)
BATCH_SIZE = Histogram(
    "nova_lite_placement_batch_size", "Requests that were placed together", buckets=(1, 2, 4, 8, 16, 32, 64, 128)
)
PLACEMENTS = Counter("nova_lite_placements_total", "Requests that were placed, by how it ended", ["outcome"])
FALL_OVERS = Counter("nova_lite_fall_overs_total", "Grants that were written and lost to an earlier one")
EXPIRED_GRANTS = Counter("nova_lite_expired_grants_total", "Grants that nobody consumed in time")
CLAIMS = Counter("nova_lite_claims_total", "Grants that computes set out to consume, by how it ended", ["outcome"])
BUILDS = Counter("nova_lite_builds_total", "Builds that ended, by how", ["outcome"])
FAILED_ATTEMPTS = Counter("nova_lite_failed_build_attempts_total", "Builds that failed on a host", ["host"])
OPERATIONS_TAKEN_OVER = Counter(
    "nova_lite_operations_taken_over_total", "Operations that a sweep took over from whoever had held them", ["kind"]
)
AUDIT_FINDINGS = Gauge("nova_lite_audit_findings", "What the last audit found wrong in the books", ["kind"])


def serve(conf: cfg.ConfigOpts, worker: int = 0) -> None:
    """Show this process' metrics, if a port is configured."""
    if not conf.metrics_port:
        return
    port = conf.metrics_port + worker
    start_http_server(port, addr=conf.metrics_host)
    LOG.info("metrics host=%s port=%d", conf.metrics_host, port)
