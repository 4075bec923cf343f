"""Jobs with DSCPs of their own: the class that each has now, the rules that say so, and the jobs of each host."""
