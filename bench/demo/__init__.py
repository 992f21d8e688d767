"""`frontage demo`: everything on one machine, and a walk through it.

The wheel holds this and the lab, and no other bench; `frontage` finds the command by the entry point in
``pyproject.toml``.
"""
