import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderDuration,
} from 'svc/cli'
import { Dependencies, describeNeeds, handArgs } from './client.ts'

const names = v.optional(v.array(v.string()), [])
const Detail = v.looseObject({
  ...Dependencies.entries,
  id: v.string(),
  name: v.string(),
  description: v.string(),
  path: v.string(),
  tools: names,
  skills: names,
  mcp_servers: names,
  capabilities: v.looseObject({ network: names, shell: names }),
  settings: v.array(
    v.looseObject({
      key: v.string(),
      label: v.string(),
      required: v.optional(v.boolean(), false),
      description: v.optional(v.string(), ''),
      setting_type: v.string(),
      options: v.optional(v.array(v.looseObject({ value: v.string() })), []),
    }),
  ),
  ignored_keys: names,
  nearest_keys: v.optional(v.record(v.string(), v.string()), {}),
  roles: v.optional(
    v.array(v.looseObject({ role: v.string(), coordinator: v.boolean(), description: v.string(), tools: names })),
    [],
  ),
  wakes: v.looseObject({
    every_secs: v.optional(v.number()),
    cron: v.optional(v.string()),
    tz: v.optional(v.string()),
  }),
  metadata: v.looseObject({ activation_warning: v.optional(v.string()) }),
  agent: v.looseObject({ system_prompt: v.string() }),
})

export default defineCommand({
  description: 'Show what a hand does, what it may use, what it needs and its settings.',
  args: {
    ...handArgs,
    prompt: { type: 'boolean', description: 'Also what its agent is told' },
    ...clientArgs,
  },
  examples: [
    ['svc hand show researcher', 'its rights, needs and settings'],
    ['svc hand show researcher --prompt', 'and the prompt'],
  ],
  async run(args) {
    const found = await callDaemon(await connect(args), (client) =>
      client.call('GET', `/api/hands/${encodeURIComponent(args.hand)}`, Detail),
    )
    if (args.json) {
      printJson(found)
      return exits.ok
    }
    const line = (title: string, list: readonly string[]): string =>
      `${title.padEnd(10)}${list.length === 0 ? 'none' : list.join(', ')}`
    const hint = (key: string): string => {
      const nearest = found.nearest_keys[key]
      return nearest === undefined ? key : `${key} (did you mean "${nearest}"?)`
    }
    const settings = found.settings.map(({ key, label, description, required, setting_type: type, options }) => {
      const choices = type === 'select' ? ` (${options.map(({ value }) => value).join(' | ')})` : ''
      return `  ${key}: ${label}${choices}${required ? ' (needed)' : ''}${description === '' ? '' : `. ${description}`}`
    })
    print(
      escapeControls(
        [
          `${found.name} (${found.id}): ${found.description}`,
          ...(found.metadata.activation_warning === undefined ? [] : [`Note: ${found.metadata.activation_warning}`]),
          ...(found.ignored_keys.length === 0 ? [] : [`Without effect: ${found.ignored_keys.map(hint).join(', ')}`]),
          '',
          line('works', [whenOf(found.wakes)]),
          ...found.roles.map(({ role, coordinator, description, tools }) =>
            coordinator
              ? `agent     ${role}, which the schedule wakes, and which asks the others`
              : `agent     ${role}: ${description} (${tools.length === 0 ? 'no tools' : tools.join(', ')})`,
          ),
          line('tools', found.tools),
          line('skills', found.skills),
          line('servers', found.mcp_servers),
          line('network', found.capabilities.network),
          line('programs', found.capabilities.shell),
          line('folder', [found.path]),
          '',
          describeNeeds(found.requirements),
          ...(settings.length === 0 ? [] : ['', 'Settings:', ...settings]),
          ...(args.prompt === true ? ['', found.agent.system_prompt.trim()] : []),
          '',
          `Let it work: ${commandLine(`hand activate ${found.id}`)}`,
        ].join('\n'),
        true,
      ),
    )
    return exits.ok
  },
})

function whenOf({ every_secs: secs, cron, tz }: v.InferOutput<typeof Detail>['wakes']): string {
  return secs === undefined ? `${cron} (${tz})` : `every ${renderDuration(secs)}`
}
