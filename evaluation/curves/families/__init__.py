"""Families of training runs: one recipe each, retrained with other seeds, rates, batches and widths."""
