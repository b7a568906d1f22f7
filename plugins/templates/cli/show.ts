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
} from 'svc/cli'
import { TemplateItem } from './client.ts'

const names = v.optional(v.array(v.string()), [])
const Detail = v.looseObject({
  ...TemplateItem.entries,
  guide: v.string(),
  skills: names,
  manifest: v.looseObject({
    capabilities: v.looseObject({ tools: names, network: names, shell: names }),
  }),
  manifest_toml: v.string(),
})

export default defineCommand({
  description: 'Show what a template is for, what it may do and how to begin.',
  args: {
    template: { type: 'positional', required: true, description: 'Name of the template' },
    toml: { type: 'boolean', description: 'Its manifest as it is, to begin one of your own' },
    ...clientArgs,
  },
  examples: [
    ['svc template show researcher', 'its rights and its guide'],
    ['svc template show coder --toml > ~/.svc/templates/my-coder.toml', 'a template of your own'],
  ],
  async run(args) {
    const found = await callDaemon(await connect(args), (client) =>
      client.call('GET', `/api/templates/${encodeURIComponent(args.template)}`, Detail),
    )
    if (args.json) printJson(found)
    else if (args.toml === true) print(found.manifest_toml.trimEnd())
    else {
      const { tools, network, shell } = found.manifest.capabilities
      const line = (title: string, list: readonly string[]): string =>
        `${title.padEnd(10)}${list.length === 0 ? 'none' : list.join(', ')}`
      print(
        escapeControls(
          [
            `${found.name}: ${found.description}`,
            '',
            line('category', [found.category]),
            line('model', [found.tier === '' ? 'any' : `${found.tier} or better`]),
            line('tools', tools),
            line('skills', found.skills.length === 0 ? ['all'] : found.skills),
            line('network', network),
            line('programs', shell),
            line('file', [found.path]),
            '',
            ...(found.guide === '' ? [] : [found.guide, '']),
            `Make an agent from it: ${commandLine(`agent new --template ${found.name}`)}`,
          ].join('\n'),
          true,
        ),
      )
    }
    return exits.ok
  },
})
