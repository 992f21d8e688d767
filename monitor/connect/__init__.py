"""Flows of the connect modal: everything in them that needs no credentials.

``steps`` claims what is due and does it; ``schedule`` decides when records are looked for; ``enrolment`` enrols their
names once they are live.
"""
