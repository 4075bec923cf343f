"""Has this host added at the controller: asks, announces itself to its switch, and waits for the decision."""
