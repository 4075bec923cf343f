"""A browser without a window, and how long the scripts of a page hold it up."""
