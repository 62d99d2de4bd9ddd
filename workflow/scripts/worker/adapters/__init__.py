"""Adapters: one module per framework API, each of which can build and train networks of the catalogue.

What a module declares and offers stands in `worker.contract`; `_template.py` is one to copy.
"""
