"""What the API answers: each answer is one type, with the function that renders it.

The type checker holds a function to its type, and ``/openapi.json`` is made of the types: a field that is added here is
sent and documented. A type's name is the name of its schema there, which generated clients know. Fields are named and
ordered as they are sent; a docstring below a field describes it.

The types are `TypedDict`s, so that a rendered answer is a dict and nothing is converted before it is encoded. They come
from `typing_extensions`, as pydantic asks for it below Python 3.12.
"""
