"""DeepProphet predicts the time of a training iteration before it runs, without running one.

The command is ``trainyard predict MODULE:FACTORY``, or ``python -m deepprophet`` where only the agent is installed. A
device is calibrated once, with ``--calibrate``. The answer has an interval, and can be registered with the controller.

[known] (thesis, 2019) The dataflow graph is analysed offline, and the iteration's time predicted for a given hardware
configuration. [ours] All of how: see docs/deepprophet.md. ``graph`` traces a model into a graph of operators
with shapes, ``costs`` says what each costs, ``device`` measures single operators, and ``predict`` puts costs, a
described network and a schedule of the iteration together.
"""
