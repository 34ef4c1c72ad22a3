"""The search for the commit that changed a time: which commits to measure next, and when it is found."""
