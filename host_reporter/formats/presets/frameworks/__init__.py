"""The logs of training frameworks and of their loops."""
