"""A zoo of drawn tables: shapes that nobody tuned for, random workloads, and whether stated errors can be trusted."""
