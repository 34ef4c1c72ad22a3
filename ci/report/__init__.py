"""What is said of a judged record: headline, tables, plots, sections."""
