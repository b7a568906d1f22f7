import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import * as v from 'valibot'
import { defineCommand, exits, Failure } from 'svc/cli'
import type { DaemonCall, DaemonClient } from 'svc/cli'
import { make, mediaArgs } from './client.ts'

const Uploaded = v.looseObject({ path: v.string() })

export default defineCommand({
  description: 'Have a recording written down, and print what is said. It costs money.',
  args: {
    file: { type: 'positional', required: true, description: 'Recording, in the workspace of the agent' },
    upload: { type: 'boolean', description: 'It is a file of this machine: send it to the agent first' },
    write: { type: 'boolean', description: 'Also write it beside the recording: .srt with times, else .txt' },
    language: { type: 'string', valueHint: 'code', description: 'ISO 639-1, such as en (default: found out)' },
    ...mediaArgs,
  },
  examples: [
    ['svc media transcribe talk.mp3', 'a file of the agent "assistant"'],
    ['svc media transcribe ~/talk.mp3 --upload --write', 'a file of this machine, with subtitles beside the copy'],
  ],
  run: (args) =>
    make(args, 'transcriptions', async (client, agentId, call) => ({
      path: args.upload ? await upload(client, `/api/agents/${agentId}/upload`, args.file, call) : args.file,
      language: args.language,
      write: args.write,
    })),
})

/** Sends a file of this machine; returns where it is in the workspace. */
async function upload(client: DaemonClient, address: string, file: string, call: DaemonCall): Promise<string> {
  let body: Uint8Array
  try {
    body = await readFile(file)
  } catch (error) {
    throw new Failure(
      exits.usage,
      `"${file}" cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  const headers = {
    ...call.headers,
    'content-type': 'application/octet-stream',
    'x-filename': encodeURIComponent(basename(file)),
  }
  const { path } = await client.call('POST', address, Uploaded, { ...call, headers, body })
  return path
}
