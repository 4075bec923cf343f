"""Studies compare several runs: their trials, the folder where these report, and their stages."""
