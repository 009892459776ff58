"""What users of an admin client pass in and get back, in a module for each subject."""
