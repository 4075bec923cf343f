"""What benches and tests share: clients, servers, processes, and loads."""
