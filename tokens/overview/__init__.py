"""The staff's first page: what has to be known in the morning, each figure at a bounded cost."""
