"""What a client follows: the stream of events, the last hour in numbers, and the network as a graph."""
