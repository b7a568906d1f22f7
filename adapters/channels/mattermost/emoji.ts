import { EMOJI_NAMES, emojiName } from 'svc/channels'

/** Mattermost takes reactions by name. */
const NAMES = { ...EMOJI_NAMES, '🤔': 'thinking' }

/** The name of an emoji, given as a character or as a name with or without colons. */
export const reactionName = (emoji: string): string => emojiName('mattermost', emoji, NAMES)
