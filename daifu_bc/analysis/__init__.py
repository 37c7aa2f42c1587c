"""Reads code objects and changes nothing."""
