"""The dashboard: static files that show what the history holds, for GitHub Pages or a folder."""
