"""Contact problems of robots as a data set, and solvers of friction side by side.

``make contact-problems`` writes the data set to ``build/contact_problems``, and tables of solvers
to ``docs/benchmarks/contact_problems.md``.
"""
