"""Switches in processes of their own, and OpenFlow messages with what reads them."""
