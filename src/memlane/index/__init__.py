"""The derived structures that search reads. Deleting them loses nothing; what is done with them is `recall`."""
