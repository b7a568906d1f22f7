import { UpstreamFailure } from 'svc/sdk'

/** Teams takes reactions by its own names: models/message/message-reaction.ts of github.com/microsoft/teams.ts. */
const NAMES: Readonly<Record<string, string>> = {
  '👍': 'like',
  '❤️': 'heart',
  '❤': 'heart',
  '👀': '1f440_eyes',
  '✅': '2705_whiteheavycheckmark',
  '🚀': 'launch',
  '📌': '1f4cc_pushpin',
}

/** The name of an emoji, given as a character or as a name. */
export function emojiName(emoji: string): string {
  const name = NAMES[emoji] ?? /^[a-z0-9][a-z0-9_-]{0,99}$/i.exec(emoji)?.[0]
  if (name !== undefined) return name
  throw new UpstreamFailure('teams', `The name of the emoji ${emoji} in Teams is not known: give the name`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}
