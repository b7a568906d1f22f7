import { emojiName } from 'svc/channels'

/** Feishu takes reactions by its own names: https://open.feishu.cn/document/server-docs/im-v1/message-reaction/emojis-introduce */
const NAMES = {
  '👀': 'GLANCE',
  '✅': 'CheckMark',
  '❌': 'CrossMark',
  '⏳': 'OneSecond',
  '⚠️': 'Alarm',
  '👍': 'THUMBSUP',
  '👎': 'ThumbsDown',
  '❤️': 'HEART',
  '🎉': 'PARTY',
  '🤔': 'THINKING',
  '🔥': 'Fire',
  '🙏': 'THANKS',
  '👏': 'APPLAUSE',
  '😂': 'LOL',
  '👋': 'WAVE',
  '💯': 'Hundred',
}

/** The name of an emoji, given as a character or as a name of Feishu. */
export const reactionName = (emoji: string): string => emojiName('feishu', emoji, NAMES)
