"""What a worker can be asked for: one module a task, imported by its name.

Each has `run(loaded, job, emit)`, where `loaded` is the job's adapter (see `worker.building`). It may raise what
`worker.__main__` knows how to tell the supervisor.
"""
