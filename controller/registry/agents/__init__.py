"""What is known of the hosts' agents: the batches that were merged, their clocks, and their leases."""
