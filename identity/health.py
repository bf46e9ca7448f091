"""Is it alive, is it ready, how is it doing: for load balancers and Prometheus (contract 6)."""

live = ready = metrics = lambda request: None
