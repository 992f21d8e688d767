"""The API's reference as an OpenAPI 3.1 document (``/openapi.json``), made from the models that check requests.

`answers`, `connect_answers` and `webhook_payloads` have the models of what is sent, `operations` one row for each
method and path, `document` puts them together. `tests/integration/api/test_reference.py` holds it true: every route has
its row, every answer its model.
"""
