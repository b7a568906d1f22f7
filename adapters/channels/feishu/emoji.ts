import { UpstreamFailure } from 'svc/sdk'

/** Feishu takes reactions by its own names: https://open.feishu.cn/document/server-docs/im-v1/message-reaction/emojis-introduce */
const NAMES: Readonly<Record<string, string>> = {
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
export function emojiName(emoji: string): string {
  const name = NAMES[emoji] ?? /^:?(\w+):?$/.exec(emoji)?.[1]
  if (name !== undefined) return name
  throw new UpstreamFailure('feishu', `The name of the emoji ${emoji} on Feishu is not known: give the name`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}
