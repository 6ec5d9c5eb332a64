"""Many residual networks trained side by side as one program; it knows nothing of the paper."""
