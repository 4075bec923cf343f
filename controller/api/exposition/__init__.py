"""``GET /metrics``: what is counted and timed, and what is now, as Prometheus reads it.

No label has the name of a job or a user, a path or an address: whoever may read the metrics may be told no more.
"""
