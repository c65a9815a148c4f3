"""A support desk that reads a customer's letter and acts on the shop's database."""
