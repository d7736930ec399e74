"""What all rooms share: the values they pass, the errors, and functions of text. Nothing here touches a disk."""
