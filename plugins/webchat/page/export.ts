import type { WholeSession } from './wire.ts'

export type ExportFormat = 'Markdown' | 'JSON'
const formats = {
  Markdown: { extension: 'md', type: 'text/markdown' },
  JSON: { extension: 'json', type: 'application/json' },
} as const

/** Saves a whole conversation as a file. */
export function exportSession(session: WholeSession, agentName: string, format: ExportFormat): void {
  const { extension, type } = formats[format]
  const text = format === 'JSON' ? `${JSON.stringify(session, undefined, 2)}\n` : toMarkdown(session, agentName)
  const link = document.createElement('a')
  link.download = `${session.title.replaceAll(/[^\p{L}\p{N}._-]+/gu, '-').replaceAll(/^[-.]+|[-.]+$/g, '') || 'conversation'}.${extension}`
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.click()
  URL.revokeObjectURL(link.href)
}

function toMarkdown({ title, messages }: WholeSession, agentName: string): string {
  const names: Readonly<Record<string, string>> = { User: 'You', Assistant: agentName }
  const sections = messages.map(({ role, content, created_at: at, tools = [], error }) =>
    [
      `## ${names[role] ?? role}`,
      `_${new Date(at).toLocaleString()}_`,
      content,
      tools.map(({ name }) => `- Used \`${name}\``).join('\n'),
      error ? `> Not answered: ${error.message}` : '',
    ]
      .filter((part) => part !== '')
      .join('\n\n'),
  )
  return `${[`# ${title}`, ...sections].join('\n\n')}\n`
}
