/** Keys of `[a2a]` about agents of other programs. */
export const clientEntries = {}
