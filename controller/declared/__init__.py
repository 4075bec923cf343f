"""What jobs declare: demand, ports and flows, checked and kept in a compact form."""
