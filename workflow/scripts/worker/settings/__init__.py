"""Knobs of libraries that more than one framework computes with: Keras 3 runs on each of them."""
