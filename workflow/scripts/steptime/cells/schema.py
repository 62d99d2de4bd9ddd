"""The columns of a shard, which are the contract of the project: those that are constant in a cell, and its rows'."""

import pyarrow as pa

from steptime.tasks import TASKS

SCHEMA_VERSION = 2
STATUSES = (
    "ok",
    "unsupported",
    "install_failed",
    "not_equivalent",
    "out_of_memory",
    "timeout",
    "crashed",
    "diverged",
)

# What a task does not have is null, but for axes, which are ''.
CONSTANT = pa.schema(
    [
        ("platform", pa.string()),
        ("environment", pa.string()),
        ("framework", pa.string()),
        ("framework_version", pa.string()),
        ("mode", pa.string()),
        ("precision", pa.string()),
        ("task", pa.string()),
        ("network", pa.string()),
        ("variant", pa.string()),
        ("optimiser", pa.string()),
        ("dataset", pa.string()),
        ("dataset_label", pa.string()),
        ("whole_dataset", pa.string()),
        ("dataset_sha256", pa.string()),
        ("device", pa.string()),
        ("devices", pa.int32()),
        ("exchange", pa.string()),
        ("threads", pa.int32()),
        ("batch", pa.int32()),
        ("repeat", pa.int32()),
        ("seed", pa.int32()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("stopped", pa.string()),
        ("target_accuracy", pa.float64()),
        ("most_epochs", pa.int32()),
        ("budget_seconds", pa.float64()),
        ("parameters", pa.int64()),
        ("flops_per_step", pa.int64()),
        ("timed_region", pa.string()),
        ("import_seconds", pa.float64()),
        ("build_seconds", pa.float64()),
        ("ready_seconds", pa.float64()),
        ("first_step_seconds", pa.float64()),
        ("warmup_steps", pa.int32()),
        ("warmup_seconds", pa.float64()),
        ("warmup_steady", pa.bool_()),
        ("peak_memory_bytes", pa.int64()),
        ("peak_device_memory_bytes", pa.int64()),
        ("cpu_seconds", pa.float64()),
        ("wall_seconds", pa.float64()),
        ("effective_threads", pa.float64()),
        ("waiting_threads", pa.float64()),
        ("involuntary_switches", pa.int64()),
        ("foreign_cpus", pa.float64()),
        ("steal_share", pa.float64()),
        ("frequency_ratio", pa.float64()),
        ("throttled_seconds", pa.float64()),
        ("device_utilisation", pa.float64()),
        ("energy_joules", pa.float64()),
        ("host_energy_joules", pa.float64()),
        ("first_loss", pa.float64()),
        ("last_loss", pa.float64()),
        ("bytes_exchanged", pa.int64()),
        ("exchange_seconds", pa.float64()),
        ("staleness", pa.float64()),
        ("proof_id", pa.string()),
        ("proven_loss", pa.float64()),
        ("proven_change", pa.float64()),
        ("proven_gradients", pa.bool_()),
        ("environment_digest", pa.string()),
        ("network_digest", pa.string()),
        ("worker_digest", pa.string()),
        ("proof_digest", pa.string()),
        ("sampling_digest", pa.string()),
        ("machine_id", pa.string()),
        ("workflow_commit", pa.string()),
        ("started_at", pa.timestamp("ms", tz="UTC")),
        ("ended_at", pa.timestamp("ms", tz="UTC")),
    ]
)
# Columns that were added while schema 2 was in use: they are null in shards from before.
ADDED = frozenset(["optimiser", "proven_gradients", "ready_seconds"])
TIMES = [field.name for field in CONSTANT if pa.types.is_timestamp(field.type)]


def rows_of(task: str) -> pa.Schema:
    """The columns of a task's shard that differ from row to row."""
    return pa.schema(
        [(name, pa.type_for_alias(kind)) for name, kind in TASKS[task].rows.columns.items()]
    )


def constant_of(task: str) -> list[str]:
    """The columns that are constant in a cell of a task."""
    return [name for name in CONSTANT.names if name not in TASKS[task].rows.columns]


def schema_of(task: str) -> pa.Schema:
    return pa.schema([*map(CONSTANT.field, constant_of(task)), *rows_of(task)])
