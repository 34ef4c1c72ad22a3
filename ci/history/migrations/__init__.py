"""Brings a database to the tables of `tables.py`. A test holds the two against each other."""
