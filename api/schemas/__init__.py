"""What requests may say and how answers look: parsed strictly, once, at the border.

`bodies` and `queries` parse what every endpoint shares, `answers` renders it; each product has a module of its own.
A field that is not known is ignored, one of the wrong type is refused; null is the same as not sent.
Nothing here asks anybody: whether an address may be dialled or a domain enrolled is the services' business.
"""
