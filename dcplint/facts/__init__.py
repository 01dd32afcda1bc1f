"""What a module says, as small picklable values: no rule and no other module is known here."""
