"""Results between machines: packed, checked, and taken."""
