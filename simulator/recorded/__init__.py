"""From the recorded events of a real controller to the jobs that ran, and what another policy would have given them."""
