import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandName,
  connect,
  defineCommand,
  escapeControls,
  exits,
  note,
  omitUndefined,
  print,
  printJson,
} from 'svc/cli'

const Spawned = v.looseObject({ agent_id: v.string(), name: v.string(), warnings: v.optional(v.array(v.string()), []) })

export default defineCommand({
  description: 'Make an agent from a template.',
  args: {
    template: { type: 'string', required: true, valueHint: 'name', description: 'Name of the template' },
    name: { type: 'string', valueHint: 'name', description: 'Name of the agent (default: that of the template)' },
    skills: {
      type: 'string',
      valueHint: 'names',
      description: 'Its skills, separated by commas; all or none (default: those of the template)',
    },
    ...clientArgs,
  },
  examples: [
    ['svc agent new --template researcher', 'an agent called researcher'],
    ['svc agent new --template coder --name ada', 'one with a name of its own'],
    ['svc agent new --template researcher --skills web-search,writing-coach', 'with these skills and no other'],
  ],
  async run({ template, name, skills, ...args }) {
    const connection = await connect(args)
    const agent = await callDaemon(connection, (client) =>
      client.call('POST', '/api/agents', Spawned, { body: omitUndefined({ template, name, skills: toNames(skills) }) }),
    )
    for (const warning of agent.warnings) note(`svc: warning: ${escapeControls(warning)}`)
    if (args.json) printJson(agent)
    else {
      const word = /^[\w.@:+-]+$/.test(agent.name) ? agent.name : agent.agent_id
      print(`agent "${agent.name}" (${agent.agent_id}) was created; talk to it with: ${commandName()} chat ${word}`)
    }
    return exits.ok
  },
})

function toNames(skills: string | undefined): readonly string[] | undefined {
  if (skills === undefined) return undefined
  const names = skills.split(',').flatMap((name) => name.trim() || [])
  if (names.length === 1 && names[0] === 'all') return ['*']
  return names.length === 1 && names[0] === 'none' ? [] : names
}
