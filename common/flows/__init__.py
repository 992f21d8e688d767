"""What a flow's row holds in its JSON columns, as frozen types. It asks nothing, decides nothing and knows no SQL.

``from_json`` reads a stored value, taken at its word; ``as_json`` writes it. `common.db.connect_flows` calls both;
`api.answers.connect` renders the same types for clients, so that a stored field is not shown before it is named there.
"""
