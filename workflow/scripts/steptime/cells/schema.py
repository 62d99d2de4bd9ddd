"""The columns of a shard, the project's contract: those that are constant in a cell, and those of its rows."""

import pyarrow as pa

from steptime.tasks import TASKS

SCHEMA_VERSION = 2
TIMES = ["started_at", "ended_at"]


def _of(kind: str, *names: str) -> list[pa.Field]:
    return [pa.field(name, pa.type_for_alias(kind)) for name in names]


# What a task does not have is null, but for axes, which are ''.
CONSTANT = pa.schema(
    [
        *_of("string", "platform", "environment", "framework", "framework_version", "mode"),
        *_of("string", "precision", "task", "network", "variant", "optimiser"),
        *_of("string", "dataset", "dataset_label", "whole_dataset", "dataset_sha256", "device"),
        *_of("int32", "devices"),
        *_of("string", "exchange"),
        *_of("int32", "threads", "batch", "repeat", "seed"),
        *_of("string", "status", "reason", "stopped"),
        *_of("float64", "target_accuracy"),
        *_of("int32", "most_epochs"),
        *_of("float64", "budget_seconds"),
        *_of("int64", "parameters", "flops_per_step"),
        *_of("string", "timed_region"),
        *_of("float64", "import_seconds", "build_seconds", "ready_seconds", "first_step_seconds"),
        *_of("int32", "warmup_steps"),
        *_of("float64", "warmup_seconds"),
        *_of("bool", "warmup_steady"),
        *_of("int64", "peak_memory_bytes", "peak_device_memory_bytes"),
        *_of("float64", "cpu_seconds", "wall_seconds", "effective_threads", "waiting_threads"),
        *_of("int64", "involuntary_switches"),
        *_of("float64", "foreign_cpus", "steal_share", "frequency_ratio", "throttled_seconds"),
        *_of("float64", "device_utilisation", "energy_joules", "host_energy_joules"),
        *_of("float64", "first_loss", "last_loss"),
        *_of("int64", "bytes_exchanged"),
        *_of("float64", "exchange_seconds", "staleness"),
        *_of("string", "proof_id"),
        *_of("float64", "proven_loss", "proven_change"),
        *_of("bool", "proven_gradients"),
        *_of("string", "environment_digest", "network_digest", "worker_digest", "proof_digest"),
        *_of("string", "sampling_digest", "machine_id", "workflow_commit"),
        *[pa.field(name, pa.timestamp("ms", tz="UTC")) for name in TIMES],
    ]
)


def rows_of(task: str) -> pa.Schema:
    """Returns the columns of a task's shard that differ from row to row."""
    columns = TASKS[task].rows.columns
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in columns.items()])


def constant_of(task: str) -> list[str]:
    """Returns the columns that are constant in a cell of a task."""
    return [name for name in CONSTANT.names if name not in TASKS[task].rows.columns]


def schema_of(task: str) -> pa.Schema:
    return pa.schema([*map(CONSTANT.field, constant_of(task)), *rows_of(task)])
