/** A row that shows a streamed answer is a `draft` until the whole answer is there. */
export const outboxStates = ['draft', 'pending', 'sending', 'sent', 'dead', 'discarded'] as const
