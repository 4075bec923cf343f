"""Jobs that the launchers start, and the controller and agent that find them."""
