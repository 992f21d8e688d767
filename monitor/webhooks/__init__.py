"""Webhooks: events on their way to partners, signed as Standard Webhooks describes.

``deliveries`` carries one through an attempt, ``sender`` makes the attempt, ``schedule`` sets when the next one is due
and ``signing`` how receivers know us. Rows and their rules are `common.db.deliveries`.
"""
