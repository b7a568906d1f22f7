import { UpstreamFailure } from 'svc/sdk'

/** Zulip takes reactions by its own names: tools/setup/emoji/emoji_names.py of github.com/zulip/zulip. */
const NAMES: Readonly<Record<string, string>> = {
  '👀': 'eyes',
  '✅': 'check',
  '❌': 'cross_mark',
  '⏳': 'time_ticking',
  '⚠️': 'warning',
  '👍': '+1',
  '👎': '-1',
  '🎉': 'tada',
  '🤔': 'thinking',
  '🙏': 'pray',
  '😀': 'grinning',
  '😂': 'joy',
  '👋': 'wave',
}

/** The name of an emoji, given as a character or as a name with or without colons. */
export function emojiName(emoji: string): string {
  const name = NAMES[emoji] ?? /^:?([a-z0-9_+-]+):?$/i.exec(emoji)?.[1]
  if (name !== undefined) return name
  throw new UpstreamFailure('zulip', `The name of the emoji ${emoji} on Zulip is not known: give the name`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}
