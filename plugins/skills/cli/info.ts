import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson, renderFacts } from 'svc/cli'
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

export default defineCommand({
  description: 'Show what a skill is for, what its tools may use, and its text.',
  args: { name: { type: 'positional', required: true, description: 'Name of the skill' }, ...clientArgs },
  examples: [['svc skill info release-notes', 'one skill']],
  async run(args) {
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
    if (skill.text !== '') print(`\n${skill.text}`)
    return exits.ok
  },
})
