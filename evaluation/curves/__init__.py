"""Records learning curves, and learns the prospects of training jobs from them."""
