"""The paper's data sets: where they come from, how they are verified, and one class of them against the rest."""
