"""Commands that `deniable` finds by the entry-point group `deniable.commands`. They measure through the other rooms."""
