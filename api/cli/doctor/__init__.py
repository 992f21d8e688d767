"""`frontage doctor`: checks everything an installation needs and prints what to do. Changes nothing.

Each check is a function from settings to findings (`findings.Finding`), of one subject, which answers within a few
seconds whatever is broken. `examination` runs them, `rendering` prints what they found.
"""
