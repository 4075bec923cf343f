"""A real Slurm of Debian's: its daemons, its settings, and the prolog and epilog that ship."""
