"""Hosts that ask to be added: what they claim, who decides, and where they are found."""
