import { UpstreamFailure } from 'svc/sdk'

/** Rocket.Chat takes reactions by name. */
const NAMES: Readonly<Record<string, string>> = {
  '👀': 'eyes',
  '✅': 'white_check_mark',
  '❌': 'x',
  '⏳': 'hourglass_flowing_sand',
  '⚠️': 'warning',
  '👍': 'thumbsup',
  '👎': 'thumbsdown',
  '❤️': 'heart',
  '🎉': 'tada',
  '🤔': 'thinking',
  '🔥': 'fire',
  '🙏': 'pray',
  '😀': 'grinning',
  '😂': 'joy',
  '🚀': 'rocket',
  '👋': 'wave',
  '💯': '100',
  '🛑': 'octagonal_sign',
}

/** The name of an emoji, given as a character or as a name with or without colons. */
export function emojiName(emoji: string): string {
  const name = NAMES[emoji] ?? /^:?([a-z0-9_+-]+):?$/i.exec(emoji)?.[1]
  if (name !== undefined) return `:${name}:`
  throw new UpstreamFailure('rocketchat', `The name of the emoji ${emoji} on Rocket.Chat is not known: give the name`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}
