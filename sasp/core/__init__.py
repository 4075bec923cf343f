"""The rules of SaSP as values: schemes, clocks, chunks, and order. Pure."""
