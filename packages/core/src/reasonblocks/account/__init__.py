"""The account of what each step of a run did, on which monitors, scores and texts rest."""
