"""What a kernel is: its cases, what is right, and how far an output may be from it."""
