"""Limits of credentials: for which taxpayers, with what, and from where."""
