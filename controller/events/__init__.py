"""What changes, as numbered events in a ring, and the last hour in numbers. Pure; the API streams and shows them."""
