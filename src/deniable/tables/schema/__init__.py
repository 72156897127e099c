"""What a service collects: attributes with public domains, in tables.

In: names, bounds and categories, from Python or a parsed file. Out: frozen `Ordinal`, `Categorical`, `Public`,
`Table` and the views of a grid, checked once. Anyone may call it; it knows no design, no ε and no data.
"""
