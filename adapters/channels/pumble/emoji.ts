import { UpstreamFailure } from 'svc/sdk'

/** Pumble takes reactions by name, between colons. */
const NAMES: Readonly<Record<string, string>> = {
  '👀': 'eyes',
  '✅': 'white_check_mark',
  '❌': 'x',
  '⏳': 'hourglass_flowing_sand',
  '⚠️': 'warning',
  '👍': '+1',
  '👎': '-1',
  '❤️': 'heart',
  '🎉': 'tada',
  '🙏': 'pray',
  '🚀': 'rocket',
}

/** The code of an emoji, given as a character or as a name with or without colons. */
export function emojiCode(emoji: string): string {
  const name = NAMES[emoji] ?? /^:?([a-z0-9_+-]{1,100}):?$/i.exec(emoji)?.[1]
  if (name !== undefined) return `:${name}:`
  throw new UpstreamFailure('pumble', `The name of the emoji ${emoji} in Pumble is not known: give the name`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}
