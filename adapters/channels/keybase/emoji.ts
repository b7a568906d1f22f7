import { EMOJI_NAMES, findEmojiName } from 'svc/channels'

/** Keybase takes reactions by their short names, in colons, which its apps show as emoji; one that is not known as it is. */
export function reactionName(emoji: string): string {
  const name = findEmojiName(emoji, EMOJI_NAMES)
  return name === undefined ? emoji : `:${name}:`
}
