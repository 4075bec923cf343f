"""What a reload of the settings does to packets, rules, queues and requests, while links are full."""
