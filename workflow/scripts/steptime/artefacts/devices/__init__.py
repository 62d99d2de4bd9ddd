"""Tables and figures of cells on several devices."""
