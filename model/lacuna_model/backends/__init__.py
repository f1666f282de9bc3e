"""The kinds of models behind one door: what each keeps of a context, and what reads its canvases.

It may import every package but the engine.
"""
