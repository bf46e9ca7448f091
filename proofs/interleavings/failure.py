"""What a run finds: a claim that does not hold, with all that is needed to understand it."""


class ClaimBroken(AssertionError):
    """A claim about a login, or about the tables, does not hold."""
