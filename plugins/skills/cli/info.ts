import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderFacts,
} from 'svc/cli'
import type { Connection } from 'svc/cli'
import { Skill } from './client.ts'

const names = v.optional(v.array(v.string()), [])
const Detail = v.looseObject({
  ...Skill.entries,
  path: v.string(),
  author: v.string(),
  license: v.string(),
  compatibility: v.string(),
  permissions: names,
  files: names,
  tools: v.array(v.looseObject({ name: v.string(), description: v.string() })),
  text: v.string(),
})

const HubDetail = v.looseObject({
  slug: v.string(),
  version: v.string(),
  description: v.string(),
  author: v.string(),
  downloads: v.number(),
  stars: v.number(),
  tags: names,
  installed: v.boolean(),
})
const HubCode = v.looseObject({ filename: v.string(), code: v.string() })

export default defineCommand({
  description: 'Show what a skill is for, what its tools may use, and its text; one of ClawHub as hub:slug.',
  args: { name: { type: 'positional', required: true, description: 'Name of the skill' }, ...clientArgs },
  examples: [
    ['svc skill info release-notes', 'one skill'],
    ['svc skill info hub:@ada/gifgrep', 'one of ClawHub, before it is installed'],
  ],
  async run(args) {
    const [, owner, slug] = /^hub:(?:@([^/]+)\/)?(.+)$/.exec(args.name) ?? []
    if (slug !== undefined) return await showOfHub(await connect(args), { owner, slug, isJson: args.json === true })
    const path = `/api/skills/${encodeURIComponent(args.name)}`
    const skill = await callDaemon(await connect(args), (client) => client.call('GET', path, Detail))
    if (args.json) {
      printJson(skill)
      return exits.ok
    }
    print(
      renderFacts([
        ['skill', `${skill.name} ${skill.version}${skill.enabled ? '' : ' (disabled)'}`],
        ['for', skill.description],
        ['folder', skill.path],
        ['author', skill.author || '-'],
        ['license', skill.license || '-'],
        ['needs', skill.compatibility || '-'],
        ['runtime', skill.runtime],
        ['may use', skill.permissions.join(', ') || 'nothing'],
        ['files', skill.files.join(', ') || '-'],
        ...skill.tools.map(({ name, description }) => ['tool', `${name}: ${description}`] as const),
      ]),
    )
    if (skill.text !== '') print(`\n${escapeControls(skill.text, true)}`)
    return exits.ok
  },
})

async function showOfHub(
  connection: Connection,
  { owner, slug, isJson }: { readonly owner: string | undefined; readonly slug: string; readonly isJson: boolean },
): Promise<number> {
  const path = `/api/clawhub/skill/${encodeURIComponent(slug)}`
  const query = owner === undefined ? '' : `?owner=${encodeURIComponent(owner)}`
  const skill = await callDaemon(connection, (client) => client.call('GET', `${path}${query}`, HubDetail))
  const { filename, code } = await callDaemon(connection, (client) =>
    client.call('GET', `${path}/code${query}`, HubCode),
  )
  if (isJson) {
    printJson({ ...skill, filename, code })
    return exits.ok
  }
  print(
    renderFacts([
      ['skill', `${skill.slug} ${skill.version}${skill.installed ? ' (installed)' : ''}`],
      ['for', skill.description],
      ['author', skill.author || '-'],
      ['tags', skill.tags.join(', ') || '-'],
      ['used', `${skill.downloads} downloads, ${skill.stars} stars`],
    ]),
  )
  print(`\n${filename}:\n${escapeControls(code, true)}`)
  return exits.ok
}
