import { emojiName } from 'svc/channels'

/** Teams takes reactions by its own names: models/message/message-reaction.ts of github.com/microsoft/teams.ts. */
const NAMES = {
  '👍': 'like',
  '❤️': 'heart',
  '👀': '1f440_eyes',
  '✅': '2705_whiteheavycheckmark',
  '🚀': 'launch',
  '📌': '1f4cc_pushpin',
}

/** The name of an emoji, given as a character or as a name. */
export const reactionName = (emoji: string): string => emojiName('teams', emoji, NAMES)
