"""The command ``trainyard lab``: one experiment under several policies."""
