"""Data sets of real images: found, checked, and written as one plain array file for each split."""


class DatasetError(Exception):
    """A data set cannot be had; the text is the whole message for the user."""
