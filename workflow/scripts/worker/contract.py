"""What the worker and an adapter agree on."""


class Unsupported(Exception):
    """The framework cannot do what the job asks for; the text is the reason, in one sentence."""


class NotEquivalent(Exception):
    """The framework built or trained another network; the text is the difference."""
