"""The workloads, in the order in which a run takes them."""

from __future__ import annotations

from bench.model import Workload
from bench.workloads.audit import audit_workloads
from bench.workloads.bulk import bulk_workloads
from bench.workloads.fairness import Crowd, Fairness
from bench.workloads.flat import FlatGroups, FlatPartitions
from bench.workloads.footprint import (
    IdleMemory,
    PassingWeek,
    SecondCluster,
    Snapshots,
    Start,
    StoredBytes,
)
from bench.workloads.groups import Rebalance
from bench.workloads.latency import Delivery, Sequential
from bench.workloads.linger import Linger
from bench.workloads.rules import IdleRules, KeptJournal, OpenConsole
from bench.workloads.share import share_workloads
from bench.workloads.spark import BulkRead, MicroBatches
from bench.workloads.streams import StreamsStart
from bench.workloads.transactions import (
    AbortedTransactions,
    OpenTransactions,
    transaction_workloads,
)
from bench.workloads.wire import ApiVersions, Connections, FullMetadata

WORKLOADS: tuple[Workload, ...] = (
    Start(),
    SecondCluster(),
    IdleMemory(),
    ApiVersions(),
    Sequential(),
    Delivery(),
    Linger(),
    *bulk_workloads(),
    StoredBytes(),
    Connections(),
    FullMetadata(),
    Rebalance(),
    FlatPartitions(),
    FlatGroups(),
    Fairness(),
    Crowd(),
    *transaction_workloads(),
    OpenTransactions(),
    AbortedTransactions(),
    *share_workloads(),
    StreamsStart(),
    PassingWeek(),
    Snapshots(),
    IdleRules(),
    KeptJournal(),
    OpenConsole(),
    BulkRead(),
    MicroBatches(),
    *audit_workloads(),
)
