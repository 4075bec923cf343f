"""What single hosts know of a job that agents have found, and how their parts become one declaration. Pure."""
