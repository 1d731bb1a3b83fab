"""Pictures: pure functions of (trace, viewport) that give small arrays ready to paint. No Qt."""
