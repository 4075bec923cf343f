"""A fluid, event-driven simulator of the same plan that the controller makes: what a policy is worth, in seconds."""
