"""Tables and figures of the papers' own: what they used, print and claim, beside what is here."""
