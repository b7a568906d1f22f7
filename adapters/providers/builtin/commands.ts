import { readArgs } from 'svc/providers'
import type { CompletionRequest } from 'svc/providers'

export interface Command {
  readonly tool: string
  readonly args: unknown
}
type Tools = CompletionRequest['tools']

/**
 * The tool calls a message asks for: lines of the form `use <tool> {json}` or `/tool <tool> {json}`. The arguments may
 * span several lines or be absent. Text that is not JSON is passed on, for the parser of the tool to refuse. A line
 * that begins with `use` and names no tool is ordinary text; `/tool` is always a call.
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
  return commands.map(({ tool, rest }) => ({ tool, args: readArgs(rest.trim()) }))
}
