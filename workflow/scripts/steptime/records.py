"""The keys of the records that programs pass to one another as JSON, for readers and for the type checker."""

from typing import Any, NotRequired, TypedDict


class Manifest(TypedDict):
    """What was installed in an environment, or why it could not be: results/environments/<environment>.json."""

    schema: int
    environment: str
    # The digest of the pins and of the step that prepares it.
    digest: str
    status: str
    reason: str
    python: str | None
    # Versions by name.
    packages: dict[str, str]
    # The compiled libraries by path (see `environments.libraries`).
    libraries: NotRequired[dict[str, Any]]
    # What was added to the packages, in words.
    prepared: NotRequired[dict[str, str]]
    # If it failed: on which machine, and whether the network was to blame.
    machine: NotRequired[str]
    passing: NotRequired[bool]


class Proof(TypedDict):
    """The verdict on a network in an environment and mode: results/proofs/<environment>.<mode>-<network>.json."""

    environment: str
    mode: str
    network: str
    status: str
    reason: str
    environment_digest: str
    proof_id: NotRequired[str]
    # What it is of, and by which code it was judged.
    proof_digest: NotRequired[str]
    network_digest: NotRequired[str]
    worker_digest: NotRequired[str]
    variables: NotRequired[str]


class Job(TypedDict):
    """All that decides the number of a cell: what a rule gives to `cells.measure`."""

    # The axes of a `plan.cell.Cell`.
    cell: dict[str, Any]
    adapter: str
    # Environment variables of the worker; {threads}, {mode} and {prefix} are filled in.
    variables: dict[str, str]
    # What the task asks besides: its sampling, or its plan of a training.
    asked: dict[str, Any]
    limits: dict[str, Any]
    # Label of the data set that a network is trained on.
    dataset: NotRequired[str]
    network_digest: NotRequired[str]
    worker_digest: NotRequired[str]


class Footer(TypedDict, total=False):
    """What a shard says besides its columns."""

    schema: int
    machine: dict[str, Any]
    software: dict[str, Any]
    workflow: dict[str, Any]
    seeds: dict[str, int]
    # Which GPUs it used, and what they did (see `machine.gpu.Watch.facts`).
    devices: dict[str, Any] | None
    job: Job
    # What the worker said, by event.
    worker: dict[str, dict[str, Any]]
    # The constant columns once more, for those who read many shards.
    row: dict[str, Any]
    # Digest of the rows' other columns.
    rows_digest: str
    # Digest of the reference that its steps were compared with, '' of none.
    reference: str
    # What each of several ranks used.
    ranks: list[dict[str, Any]]
    # After which trials of its grid was looked at the comparisons, where a look asked for this process.
    looks: list[int]
    # Notes of what a training used.
    resources: dict[str, Any]
