import { EMOJI_NAMES, emojiName } from 'svc/channels'

/** Rocket.Chat takes reactions by name. */
const NAMES = { ...EMOJI_NAMES, '👍': 'thumbsup', '👎': 'thumbsdown', '🤔': 'thinking' }

/** The name of an emoji in colons, given as a character or as a name with or without colons. */
export const reactionName = (emoji: string): string => `:${emojiName('rocketchat', emoji, NAMES)}:`
