"""Bearer tokens of an OpenID Connect provider: its keys, and what a token must say."""
