class MixedRowsError(Exception):
    """Rows that must not stand in one table; the text is the whole message for the user."""
