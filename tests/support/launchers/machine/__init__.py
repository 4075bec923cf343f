"""What a real launcher needs of this machine: control groups, programs, a network of its own, and users."""
