"""What a worker can be asked for: one module a task, imported by its name.

Each has `run(job, emit)`, which may raise what `worker.__main__` knows to tell the supervisor.
"""
