import type { CompletionRequest } from 'svc/providers'
import { readJson } from 'svc/sdk'

export interface Command {
  readonly tool: string
  readonly args: unknown
}
type Tools = CompletionRequest['tools']

/**
 * The tool calls a message asks for: lines of the form `use <tool> {json}` or `/tool <tool> {json}`. The arguments may
 * go on over several lines and be absent. Text that is not JSON stays text, for the tool's own parser to refuse.
 * A line that begins with `use` and names no tool is ordinary speech; `/tool` is always meant as a call.
 */
export function readCommands(text: string, tools: Tools): readonly Command[] {
  const commands: { tool: string; rest: string }[] = []
  for (const line of text.split(/\r?\n/)) {
    const match = /^\s*(use|\/tool)\s+([\w.-]+)\s*(.*)$/i.exec(line)
    const [, verb = '', tool = '', rest = ''] = match ?? []
    const last = commands.at(-1)
    if (match && (verb === '/tool' || tools.some(({ name }) => name === tool) || rest.startsWith('{')))
      commands.push({ tool, rest })
    else if (last && line.trim() !== '') last.rest += `\n${line}`
  }
  return commands.map(({ tool, rest }) => ({ tool, args: readArgs(rest) }))
}

function readArgs(text: string): unknown {
  const trimmed = text.trim()
  if (trimmed === '') return {}
  try {
    return readJson(trimmed)
  } catch {
    return trimmed /* told to the model's side by the tool's parser */
  }
}
