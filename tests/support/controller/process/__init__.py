"""What holds a controller's process up, and the clients that write to it while it stops."""
