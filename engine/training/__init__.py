"""How the small models in assets/ are trained, and how one is trained while you watch.

python -m engine.training all         train them all again, on one core
python -m engine.training evaluate    measure every head
"""
