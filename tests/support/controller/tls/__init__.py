"""Certificates for the tests, with the authority that signs them, and a controller that has them."""
