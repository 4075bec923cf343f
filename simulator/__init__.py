"""A fluid, event-driven network simulator that orders jobs with the same plan as the controller.

It says how many seconds a policy saves. The command is ``trainyard sim``; in Python it is
``simulator.engine.simulate``. ``workloads`` makes the jobs, ``sweep`` runs many simulations, ``reports`` turns them
into tables and plots, and ``kernel`` has the compiled loops.
"""
