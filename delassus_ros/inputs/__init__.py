"""Inputs of the nodes: messages become values with ages and faults.

Parameters of the same name have the same meaning in all modules. Stamps and times are integers
[ns] unless their unit is [s]:

- `stamp`: stamp of a message; 0 or less if the message has none.
- `now`: time of the node's clock; 0 while the clock has no time, as before simulated time begins.
- `delay`: time between sending and `now`.
- `clock_step`: longest step of simulated time, by which stamps may be ahead of the clock; 0 if
  time is not simulated.
- `max_skew`: how far a stamp may be further ahead of the clock when the message arrives [s].
- `timeout`: age above which values are too old [s]; infinite for never.
- `count`: number of the message among those of its publisher; 0 if unknown.
- `warn`: called with the kind of a warning and its text.
"""
