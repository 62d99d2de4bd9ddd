"""The language in which the claims of papers are written down as calculations."""
