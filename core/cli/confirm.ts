import { createInterface } from 'node:readline/promises'

/** Asks at the terminal; `undefined` when nobody is there to answer. */
export async function confirm(question: string, isJson: boolean): Promise<boolean | undefined> {
  if (!process.stdin.isTTY || isJson) return undefined
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(?:es)?$/i.test((await prompt.question(question)).trim())
  } finally {
    prompt.close()
  }
}
