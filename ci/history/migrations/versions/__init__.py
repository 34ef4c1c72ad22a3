"""The steps, one a file: never changed once released, so that every database gets to the next one."""
