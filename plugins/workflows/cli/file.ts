import { readFile } from 'node:fs/promises'
import * as v from 'valibot'
import { clientArgs, commandLine, escapeControls, exits, Failure, note } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

const Answer = v.looseObject({
  workflows: v.array(
    v.object({
      workflow_id: v.nullable(v.string()),
      name: v.string(),
      steps: v.number(),
      warnings: v.array(v.string()),
    }),
  ),
})
export type Imported = v.InferOutput<typeof Answer>

export const fileArgs = {
  file: { type: 'positional', required: true, description: 'JSON or TOML file; - reads standard input' },
  ...clientArgs,
} as const

/** Sends a file to the daemon; `check` creates nothing. What was left out is noted. */
export async function sendFile(client: DaemonClient, file: string, check: boolean): Promise<Imported> {
  const text = await readText(file)
  const format = file.endsWith('.json') ? 'json' : file.endsWith('.toml') ? 'toml' : undefined
  const answer = await client
    .call('POST', '/api/workflows/import', Answer, { body: { text, format, check } })
    .catch((error: unknown) => {
      throw nameFile(error, file)
    })
  for (const { name, warnings } of answer.workflows)
    for (const warning of warnings) note(`svc: warning: ${escapeControls(name)}: ${escapeControls(warning)}`)
  return answer
}

/** The daemon names the field of the request; people know the file. */
function nameFile(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || !error.message.startsWith('text: ')) return error
  return new Failure(exits.failed, error.message.replace('text', file), undefined, { cause: error })
}

async function readText(file: string): Promise<string> {
  if (file === '-') {
    const parts: Buffer[] = []
    for await (const part of process.stdin) parts.push(Buffer.from(part as Uint8Array))
    return Buffer.concat(parts).toString('utf8')
  }
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    throw new Failure(
      code === 'ENOENT' ? exits.notFound : exits.failed,
      `${file} cannot be read (${code})`,
      `${commandLine('workflow show <name> --json')} prints one that can be created again`,
      { cause: error },
    )
  }
}
