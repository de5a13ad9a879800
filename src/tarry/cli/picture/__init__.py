"""Pictures of a timing wheel as SVG, drawn from a real one step by step."""
