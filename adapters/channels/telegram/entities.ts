import type { Bot } from './decode.ts'
import type { Entity } from './wire.ts'

/** A piece of the text and what takes its place. */
interface Replacement {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The text without the mention of the bot, with the addresses of links, and whether the bot is mentioned. */
export function readText(
  text: string,
  entities: readonly Entity[],
  bot: Bot,
): { readonly text: string; readonly mentionsBot: boolean } {
  const at = `@${bot.username}`.toLowerCase()
  const replacements: Replacement[] = []
  let mentionsBot = false
  for (const entity of entities) {
    const start = entity.offset
    const end = start + entity.length
    const content = text.slice(start, end)
    if (isMention(entity, content, bot, at)) {
      mentionsBot = true
      replacements.push({ start, end, text: '' })
    } else if (entity.type === 'bot_command' && content.toLowerCase().endsWith(at)) {
      mentionsBot = true
      replacements.push({ start, end, text: content.slice(0, -at.length) })
    } else if (entity.type === 'text_link' && entity.url !== undefined) {
      replacements.push({ start, end, text: `[${content}](${entity.url})` })
    }
  }
  return { text: replace(text, replacements).trim(), mentionsBot }
}

function isMention(entity: Entity, content: string, bot: Bot, at: string): boolean {
  if (entity.type === 'mention') return content.toLowerCase() === at
  return entity.type === 'text_mention' && entity.user?.id === bot.id
}

/** Offsets of Telegram count UTF-16 units, as those of JavaScript. */
function replace(text: string, replacements: readonly Replacement[]): string {
  let result = ''
  let position = 0
  for (const { start, end, text: other } of replacements.toSorted((a, b) => a.start - b.start)) {
    if (start < position) continue
    result += text.slice(position, start) + other
    position = end
  }
  return result + text.slice(position)
}
