import { PluginProblem } from './definition.ts'
import { sourcePlace } from './source-place.ts'
import { messageOf } from '../errors/message.ts'

/** Code that cannot be evaluated. */
export async function importProblem(error: unknown, folder: string): Promise<PluginProblem> {
  return new PluginProblem(await describe(error, folder), { cause: error })
}

/** Why setup failed, with the place in the author's code where that is known. */
export async function setupProblem(error: unknown, folder: string): Promise<string> {
  const message = messageOf(error)
  const place = endsWithPlace(message) ? undefined : await sourcePlace(error, folder)
  return place === undefined ? message : `${message} (${place})`
}

/** The message with a place in the author's code: from the parser, else from the first stack line in the folder. */
async function describe(error: unknown, folder: string): Promise<string> {
  if (!(error instanceof Error)) return `importing ${folder} failed: ${String(error)}`
  const message = error.message.replaceAll(/\s+/g, ' ').trim()
  if (endsWithPlace(message)) return message
  return `${message} (${(await sourcePlace(error, folder)) ?? `in ${folder}`})`
}

const endsWithPlace = (message: string): boolean => /:\d+(:\d+)?\)?$/.test(message)
