"""What the engine's bench asks the model: text to copy, text to edit, and plain chat."""

from __future__ import annotations

RIVER = (
    "The river rises in the hills above the old town, where three springs meet under a row of alders. It runs past "
    "the mill and under the stone bridge, turns twice around the meadow, and leaves the valley through a narrow gap. "
    "In spring the water is high and brown; in late summer children can walk across it without wetting their knees."
)
CODE = '''def total_price(items, tax_rate):
    """Sum the prices of the items and add the tax."""
    subtotal = 0
    for item in items:
        subtotal += item.price * item.quantity
    tax = subtotal * tax_rate
    return subtotal + tax


def average_price(items):
    """The mean price of one item."""
    if not items:
        return 0
    return sum(item.price for item in items) / len(items)
'''
LIST = "\n".join(
    f"{number}. {name}: {size} metres, {colour} walls, built in {year}"
    for number, (name, size, colour, year) in enumerate(
        [
            ("Harbour house", 12, "white", 1911),
            ("Mill house", 9, "grey", 1874),
            ("School house", 15, "yellow", 1902),
            ("Bridge house", 7, "white", 1850),
            ("Garden house", 5, "green", 1933),
        ],
        start=1,
    )
)

COPY = {
    "copy prose": f"Repeat the following text exactly, word for word:\n\n{RIVER}",
    "copy code": f"Repeat the following Python code exactly:\n\n{CODE}",
    "edit list": f"Write this list again, with every 'white' changed to 'red':\n\n{LIST}",
}
CHAT = {
    "chat": "Tell me a short story about a lighthouse keeper and a lost dog.",
    "advice": "How can I learn to cook well? Give me some advice.",
}
