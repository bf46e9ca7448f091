"""The history as a feed: what its readers need to miss nothing."""
