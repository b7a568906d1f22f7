import { EMOJI_NAMES, emojiName } from 'svc/channels'

/** Slack takes reactions by name. Source: https://docs.slack.dev/reference/methods/reactions.add */
export const reactionName = (emoji: string): string => emojiName('slack', emoji, EMOJI_NAMES)
