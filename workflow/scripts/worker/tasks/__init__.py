"""What a worker can do: one module a task, imported by its name.

Each has `run(loaded, job, emit)`, where `loaded` is the job's adapter (see `worker.building`). It may raise the errors
that `worker.__main__` reports to the supervisor.
"""
