"""The logs of programs that grow trees."""
