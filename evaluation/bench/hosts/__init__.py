"""What Trainyard costs on a host: the agent beside many jobs, and callbacks inside trainings."""
