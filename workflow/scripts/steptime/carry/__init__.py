"""Carries results between machines: packs, checks and takes them."""
