import { emojiName } from 'svc/channels'

/** Zulip takes reactions by its own names: tools/setup/emoji/emoji_names.py of github.com/zulip/zulip. */
const NAMES = {
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
export const reactionName = (emoji: string): string => emojiName('zulip', emoji, NAMES)
