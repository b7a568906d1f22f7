import { UpstreamFailure } from 'svc/sdk'

/** Slack takes reactions by name. Source: https://docs.slack.dev/reference/methods/reactions.add */
const NAMES: Readonly<Record<string, string>> = {
  '👀': 'eyes',
  '✅': 'white_check_mark',
  '❌': 'x',
  '⏳': 'hourglass_flowing_sand',
  '⚠️': 'warning',
  '⚠': 'warning',
  '👍': '+1',
  '👎': '-1',
  '❤️': 'heart',
  '❤': 'heart',
  '🎉': 'tada',
  '🤔': 'thinking_face',
  '🔥': 'fire',
  '🙏': 'pray',
  '😀': 'grinning',
  '😂': 'joy',
  '🚀': 'rocket',
  '👋': 'wave',
  '💯': '100',
  '⏸️': 'double_vertical_bar',
  '🛑': 'octagonal_sign',
}

/** The name of an emoji, given as a character or as a name with or without colons. */
export function emojiName(emoji: string): string {
  const name = NAMES[emoji] ?? /^:?([a-z0-9_+'-]+):?$/i.exec(emoji)?.[1]
  if (name !== undefined) return name
  throw new UpstreamFailure('slack', `The name of the emoji ${emoji} on Slack is not known: give the name`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}
