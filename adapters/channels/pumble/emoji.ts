import { EMOJI_NAMES, emojiName } from 'svc/channels'

/** Pumble takes reactions by name, in colons. */
export const reactionName = (emoji: string): string => `:${emojiName('pumble', emoji, EMOJI_NAMES)}:`
