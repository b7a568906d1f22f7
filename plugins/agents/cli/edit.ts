import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  confirm,
  connect,
  DaemonRefusal,
  defineCommand,
  editFile,
  escapeControls,
  exits,
  explainError,
  Failure,
  note,
  print,
  printJson,
} from 'svc/cli'
import type { Connection } from 'svc/cli'
import { requireAgent } from './client.ts'

const Detail = v.looseObject({ id: v.string(), name: v.string(), manifest_toml: v.string() })
const Patched = v.looseObject({
  agent_id: v.string(),
  name: v.string(),
  warnings: v.optional(v.array(v.string()), []),
})

export default defineCommand({
  description:
    'Edit the manifest of an agent in the editor of VISUAL or EDITOR, and replace it when the editor is closed. ' +
    'A mistake is shown with its line, and the editor opens again if you like.',
  args: { agent: { type: 'positional', required: true, description: 'Name or id of the agent' }, ...clientArgs },
  examples: [
    ['svc agent edit scout', 'in the usual editor'],
    ['EDITOR=nano svc agent edit scout', 'in another one'],
  ],
  async run(args) {
    const connection = await connect(args)
    const agent = await callDaemon(connection, async (client) => {
      const { id } = await requireAgent(client, args.agent)
      return client.call('GET', `/api/agents/${id}`, Detail)
    })
    const folder = await mkdtemp(join(tmpdir(), 'svc-edit-'))
    const file = join(folder, 'manifest.toml')
    await writeFile(file, agent.manifest_toml, { mode: 0o600 })
    const patched = await editUntilAccepted(connection, agent, file, args.json === true)
    await rm(folder, { recursive: true })
    for (const warning of patched?.warnings ?? []) note(`svc: warning: ${escapeControls(warning)}`)
    if (args.json) printJson(patched ?? { agent_id: agent.id, name: agent.name, status: 'unchanged' })
    else print(patched ? `agent "${patched.name}" has the new manifest` : 'nothing was changed')
    return exits.ok
  },
})

/** `undefined` when the text is as it was. What was written is never lost: a failure says where it is. */
async function editUntilAccepted(
  connection: Connection,
  { id, manifest_toml: before }: v.InferOutput<typeof Detail>,
  file: string,
  isJson: boolean,
): Promise<v.InferOutput<typeof Patched> | undefined> {
  const { client } = connection
  for (;;) {
    await editFile(file)
    const text = await readFile(file, 'utf8')
    if (text === before) return undefined
    try {
      if ((await client.call('GET', `/api/agents/${id}`, Detail)).manifest_toml !== before)
        throw new Failure(exits.failed, 'somebody else changed the manifest meanwhile')
      return await client.call('PATCH', `/api/agents/${id}`, Patched, { body: { manifest_toml: text } })
    } catch (error) {
      const isMistake = error instanceof DaemonRefusal
      if (isMistake) note(`svc: ${escapeControls(describeMistake(error.message, text), true)}`)
      if (isMistake && (await confirm('Go on editing? [y/N] ', isJson)) === true) continue
      note(`svc: your text is kept in ${file}`)
      throw isMistake
        ? new Failure(exits.failed, 'the agent is as it was', undefined, { cause: error })
        : explainError(error, connection)
    }
  }
}

/** What is wrong, and the line it is in. */
function describeMistake(message: string, text: string): string {
  const line = Number(/^manifest_toml:(\d+): /.exec(message)?.[1] ?? / at line (\d+)/.exec(message)?.[1])
  const said = message.replace(/^manifest_toml:(?:\d+:)? */, '')
  const shown = text.split('\n')[line - 1]
  return shown === undefined ? said : `${said}\n  line ${line}: ${shown.trim()}`
}
