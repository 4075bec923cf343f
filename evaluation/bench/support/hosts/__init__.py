"""What an agent meets on a host: processes of jobs, their packets, a namespace, and the server it reports to."""
