"""Rules that the parts of the API share, beneath its schemas.

They are about settings, secrets and tokens of applications, passwords, records that a zone can hold, and how stored
values are shown. No module here imports another package of `api`.
"""
