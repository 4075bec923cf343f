"""The rules of SaSP as values: schemes, clocks, chunks and the order of sending. Pure."""
