"""What an order of studies can win at all: bounds that no order beats, and orders that know everything."""
