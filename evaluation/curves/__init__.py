"""The recorded learning curves, and what is learnt from them."""
