"""Servers and their interfaces: what jobs say of servers, as traffic between interfaces. Pure."""
