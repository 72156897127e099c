"""Questions over the MySQL protocol, for tools that speak it: `deniable serve --mysql PORT`.

In come connections with a key of the scope ask; out go answers of the same database that `POST /v1/sql` asks. Only
`service.serving` calls this room. It needs the package mysql-mimic, which the extra `serve` brings.

    tree_translation     MySQL's words for what our SQL says differently
    information_schema   INFORMATION_SCHEMA, SHOW CREATE TABLE and constants, answered without any report
    variables            @@deniable_confidence and the other session variables
    session              one connection's statements
    packet_stream        packets of a bounded size, and the change to TLS
    mysql_server         who may connect, how, and how many
"""
