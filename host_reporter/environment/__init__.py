"""Files that hand each job its own DSCP when it is launched, as variables of its environment."""
