"""Who may do what: certificates, and what is wrong with a peer's."""
