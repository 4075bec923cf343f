"""What an arm uses: processors, links and TCP, measured while its jobs are watched."""
