"""What the worker and the workflow both need. Plain Python that 3.6 can import: standard library and numpy."""
