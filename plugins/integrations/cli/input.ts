import { createInterface } from 'node:readline/promises'
import { readSecret, terminalMode } from 'svc/cli'

export interface Input {
  /** What is typed, secrets without echo; without a terminal the next line of standard input. */
  ask(prompt: string, isSecret: boolean): Promise<string>
}

export function openInput(): Input {
  return terminalMode().canType ? { ask: askOnTerminal } : linesOf(process.stdin)
}

async function askOnTerminal(prompt: string, isSecret: boolean): Promise<string> {
  if (isSecret) return await readSecret(prompt)
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return (await lines.question(prompt)).trim()
  } finally {
    lines.close()
  }
}

function linesOf(stream: NodeJS.ReadStream): Input {
  const lines = createInterface({ input: stream })[Symbol.asyncIterator]()
  return {
    async ask() {
      const { done, value } = await lines.next()
      return done === true ? '' : value.trim()
    },
  }
}
