/** Keybase takes reactions by their short names, which its apps show as emoji. */
const NAMES: Readonly<Record<string, string>> = {
  '👀': 'eyes',
  '✅': 'white_check_mark',
  '❌': 'x',
  '⏳': 'hourglass_flowing_sand',
  '⚠️': 'warning',
  '👍': '+1',
  '👎': '-1',
  '🎉': 'tada',
  '🤔': 'thinking_face',
  '🙏': 'pray',
  '😀': 'grinning',
  '😂': 'joy',
  '👋': 'wave',
}

/** The name of an emoji in colons; one that is not known as it is. */
export function emojiName(emoji: string): string {
  const name = NAMES[emoji] ?? /^:?([a-z0-9_+-]+):?$/i.exec(emoji)?.[1]
  return name === undefined ? emoji : `:${name}:`
}
