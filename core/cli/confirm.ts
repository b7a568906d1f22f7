/** Asks for a yes at the terminal; `undefined` when nobody is there to answer, or the answer is to be JSON. */
export async function confirm(question: string, isJson: boolean): Promise<boolean | undefined> {
  if (!process.stdin.isTTY || isJson) return undefined
  const { createInterface } = await import('node:readline/promises')
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(?:es)?$/i.test((await prompt.question(question)).trim())
  } finally {
    prompt.close()
  }
}
