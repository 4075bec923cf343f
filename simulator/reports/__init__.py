"""What is said of a run: targets and their times, statistics over seeds, the JSON document, tables, plots, HTML."""
