"""The logs of programs that train models of images."""
