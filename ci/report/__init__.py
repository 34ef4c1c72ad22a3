"""The report on judged records: headline, tables, plots, sections."""
