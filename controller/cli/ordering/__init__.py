"""``trainyard order``: orders a snapshot file, without a controller."""
