"""As a part of which job a process was started: one small module a launcher, and the look at /proc that feeds them."""
