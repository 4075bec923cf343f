"""The claim ``tensorlights``: order at the hosts' network interfaces."""
