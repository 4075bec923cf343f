"""DeepProphet: the time of a training iteration, before it runs.

[known] (thesis, 2019) The dataflow graph is analysed offline, and the iteration's time predicted for a given hardware
configuration. [ours] All of how: see docs/deepprophet.md. The middle is pure: a graph of operators with shapes
(``graph``), what each costs (``costs``), a described network (``network``), and an iteration played through
(``schedule``). The edges are thin: PyTorch traces (``trace``) and measures single operators (``bench``).
"""
