"""The shell: what Streamlit shows and what it remembers. All the science is in engine."""
