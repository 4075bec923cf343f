"""Which ways with late gradients bring a target sooner: many trainings in one process, with late gradients emulated."""
