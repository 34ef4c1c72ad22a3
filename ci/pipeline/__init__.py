"""What a pull request gets, from sources to a comment, on one machine."""
