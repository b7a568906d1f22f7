/** Slack writes links, mentions and channels in angle brackets: `<@U1>`, `<#C1|general>`, `<https://x.org|label>`. */
const MARKUP = /<([^<>]+)>/g

/** The text of a message as Markdown, without the mention of the bot. */
export function readText(text: string, botId: string): string {
  const plain = unescape(text.replaceAll(MARKUP, (_, inner: string) => readMarkup(inner, botId))).trim()
  // What is addressed to the bot begins with its name and often a comma.
  return mentions(text, botId) ? plain.replace(/^[,:]\s*/, '') : plain
}

export function mentions(text: string, userId: string): boolean {
  return text.includes(`<@${userId}>`) || text.includes(`<@${userId}|`)
}

function readMarkup(inner: string, botId: string): string {
  const bar = inner.indexOf('|')
  const [target, label] = bar === -1 ? [inner, ''] : [inner.slice(0, bar), inner.slice(bar + 1)]
  const name = target.slice(1)
  if (target.startsWith('@')) return name === botId ? '' : `@${label || name}`
  if (target.startsWith('#')) return `#${label || name}`
  if (target.startsWith('!')) return label || `@${name.split('^', 1)[0]}`
  return label === '' || label === target ? target : `[${label}](${target})`
}

function unescape(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
