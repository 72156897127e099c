"""`deniable demo`: a shop with two services and a stream of meter readings, queried and attacked in under a minute."""
