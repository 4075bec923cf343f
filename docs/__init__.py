"""The pages of the documentation, and what generates the references among them."""
