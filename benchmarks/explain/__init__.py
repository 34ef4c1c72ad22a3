"""Planted causes of another speed: does the first sentence of "Why" name the one that was planted?"""
