import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  note,
  print,
  printJson,
} from 'svc/cli'

const Answer = v.looseObject({
  id: v.string(),
  name: v.string(),
  path: v.string(),
  warnings: v.optional(v.array(v.looseObject({ severity: v.string(), message: v.string() })), []),
})
const isId = (source: string): boolean => /^[a-z0-9][a-z0-9_-]{0,63}$/.test(source)

export default defineCommand({
  description: 'Install a hand from a folder with a HAND.toml, or copy one that comes with svc to change it.',
  args: {
    source: { type: 'positional', required: true, description: 'Folder, or the id of a hand that comes with svc' },
    update: { type: 'boolean', description: 'Replace the hand when it is installed' },
    ...clientArgs,
  },
  examples: [
    ['svc hand install ./tides', 'a folder'],
    ['svc hand install wiki', 'a copy to edit'],
  ],
  async run(args) {
    const source = existsSync(join(args.source, 'HAND.toml')) ? readFolder(args.source) : fromSlug(args.source)
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/hands/install', Answer, { body: { ...source, update: args.update === true } }),
    )
    for (const { severity, message } of answer.warnings) note(escapeControls(`svc: ${severity}: ${message}`))
    if (args.json) printJson(answer)
    else print(`The hand "${answer.id}" is in ${answer.path}`)
    return exits.ok
  },
})

/** The texts are sent: the daemon may run on another machine. */
function readFolder(folder: string): { readonly toml_content: string; readonly skill_content?: string } {
  const read = (name: string): string => readFileSync(join(resolve(folder), name), 'utf8')
  const skill = existsSync(join(folder, 'SKILL.md'))
  return { toml_content: read('HAND.toml'), ...(skill && { skill_content: read('SKILL.md') }) }
}
function fromSlug(source: string): { readonly slug: string } {
  if (isId(source)) return { slug: source }
  throw new Failure(exits.notFound, `${source} has no HAND.toml`)
}
