/** `parked`: nobody works on it any more; `reason` says why. */
export const inboxStates = ['pending', 'processing', 'done', 'parked'] as const
