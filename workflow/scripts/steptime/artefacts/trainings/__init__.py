"""Tables and figures of whole trainings."""
