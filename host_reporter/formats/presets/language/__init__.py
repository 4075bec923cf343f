"""The logs of programs that train language models."""
