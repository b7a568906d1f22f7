export type Level = 'error' | 'warn' | 'info'

/**
 * How much an entry of the audit log matters (API facts 4.9), by the words of its event and of the start of its
 * details.
 */
export function levelOf(event: string, details: string): Level {
  const text = `${event} ${details.slice(0, 200)}`
  if (/\b(error|fail|failed|failure|crash|crashed|denied|refused)\b/i.test(text.replaceAll('_', ' '))) return 'error'
  if (/\b(warn|warning|block|blocked|kill|killed|interrupted)\b/i.test(text.replaceAll('_', ' '))) return 'warn'
  return 'info'
}

export function outcomeOf(event: string, details: string): 'ok' | 'error' | 'denied' {
  if (/\b(denied|refused)\b/i.test(details.slice(0, 200))) return 'denied'
  return levelOf(event, details) === 'error' ? 'error' : 'ok'
}
