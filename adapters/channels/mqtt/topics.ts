const MAX_TOPIC_BYTES = 65_535

export function isTopic(topic: string): boolean {
  return topic !== '' && !/[+#\0]/.test(topic) && Buffer.byteLength(topic) <= MAX_TOPIC_BYTES
}

/** A topic in which `+` stands for one level and `#`, at the end, for all that follow. */
export function isFilter(filter: string): boolean {
  const levels = filter.split('/')
  return (
    isTopic(filter.replaceAll(/[+#]/g, 'x')) &&
    levels.every(
      (level, index) => !/[+#]/.test(level) || level === '+' || (level === '#' && index === levels.length - 1),
    )
  )
}

export function matchesFilter(filter: string, topic: string): boolean {
  const [wanted, levels] = [filter.split('/'), topic.split('/')]
  // Topics of the broker itself are named in full.
  if (topic.startsWith('$') !== filter.startsWith('$')) return false
  for (const [index, level] of wanted.entries()) {
    if (level === '#') return true
    if (level !== '+' && level !== levels[index]) return false
    if (levels[index] === undefined) return false
  }
  return wanted.length === levels.length
}

/** The level of a topic that the first `+` of a filter stands for. */
export function wildcardOf(filters: readonly string[], topic: string): string | undefined {
  const filter = filters.find((one) => matchesFilter(one, topic))
  const index = filter?.split('/').indexOf('+') ?? -1
  return index === -1 ? undefined : topic.split('/')[index]
}

/** The topic of a person, whose name stays one level. */
export function topicFor(template: string, user: string): string {
  return template.replaceAll('{user}', () => user.replaceAll(/[/+#%\0]/g, encodeURIComponent))
}
