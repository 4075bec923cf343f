"""Which jobs run on this host, and who follows them."""
