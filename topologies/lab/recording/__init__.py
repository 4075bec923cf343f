"""What is recorded of an arm, so that ``trainyard console`` can play it: events, facts and explanations."""
