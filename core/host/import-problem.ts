import { PluginProblem } from './definition.ts'

/** Code that cannot be evaluated. */
export function importProblem(error: unknown, folder: string): PluginProblem {
  return new PluginProblem(describe(error, folder), { cause: error })
}

/** The message with a place in the author's code: from the parser, else from the first stack line in the folder. */
function describe(error: unknown, folder: string): string {
  if (!(error instanceof Error)) return `importing ${folder} failed: ${String(error)}`
  const message = error.message.replaceAll(/\s+/g, ' ').trim()
  if (/:\d+(:\d+)?$/.test(message)) return message
  const place = error.stack
    ?.split('\n')
    .map((line) => /(?:file:\/\/)?(\/[^()]+:\d+:\d+)/.exec(line)?.[1])
    .find((found) => found?.startsWith(folder))
  return place ? `${message} (${place})` : `${message} (in ${folder})`
}
