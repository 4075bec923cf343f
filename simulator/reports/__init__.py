"""From runs to results: targets and their times, statistics over seeds, the JSON document, tables, plots and HTML."""
