"""The paper, reproduced: protocol, runs, figures, verdicts."""
