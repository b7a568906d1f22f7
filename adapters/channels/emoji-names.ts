import { UpstreamFailure } from 'svc/sdk'

/** Names by which several platforms know an emoji. Source: https://github.com/iamcal/emoji-data */
export const EMOJI_NAMES: Readonly<Record<string, string>> = {
  '👀': 'eyes',
  '✅': 'white_check_mark',
  '❌': 'x',
  '⏳': 'hourglass_flowing_sand',
  '⚠️': 'warning',
  '👍': '+1',
  '👎': '-1',
  '❤️': 'heart',
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

const NAME = /^:?([a-z0-9_+'-]{1,100}):?$/i
/** Asks for the colourful form of a character; people and programs leave it out. */
const VARIATION = '\ufe0f'

/**
 * The name of an emoji on a platform, given as a character or as a name with or without colons; `undefined` if it is
 * neither a character of `names` nor a name.
 */
export function findEmojiName(emoji: string, names: Readonly<Record<string, string>>): string | undefined {
  const known = [emoji, emoji + VARIATION].find((written) => Object.hasOwn(names, written))
  return known === undefined ? NAME.exec(emoji)?.[1] : names[known]
}

/** As `findEmojiName`; throws `UpstreamFailure` where there is none. */
export function emojiName(system: string, emoji: string, names: Readonly<Record<string, string>>): string {
  const name = findEmojiName(emoji, names)
  if (name !== undefined) return name
  const message = `The name of the emoji ${emoji} on ${system} is not known: give the name`
  throw new UpstreamFailure(system, message, { reason: 'invalid_request', retry: 'never' })
}
