"""SQL text → question → weights on cells → plan → answers with errors. `docs/architecture.md` shows the way."""
