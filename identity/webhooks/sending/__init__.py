"""One message to one receiver: signed, sent, tried again."""
