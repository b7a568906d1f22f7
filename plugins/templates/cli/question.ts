import { createInterface } from 'node:readline/promises'

/** Asks at the terminal; an empty answer is the fallback, which is shown, or described by `meaning` when it is empty. */
export async function ask(question: string, fallback: string, meaning = fallback): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await lines.question(`${question} [${fallback === '' ? meaning : fallback}]: `)
    return answer.trim() || fallback
  } finally {
    lines.close()
  }
}
