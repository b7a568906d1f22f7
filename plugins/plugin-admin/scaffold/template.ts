import { join } from 'node:path'
import { channelFiles } from './channel.ts'
import { pluginFiles } from './plugin.ts'
import { providerFiles } from './provider.ts'

export const kinds = ['plugin', 'channel', 'provider'] as const
export type Kind = (typeof kinds)[number]

/** What the files of a new plugin are made of. */
export interface Template {
  readonly kind: Kind
  /** kebab-case. */
  readonly name: string
  /** One line. */
  readonly description: string
  /** The `tsconfig.json` with the types of the installation. */
  readonly types: string
  /** The script that starts svc, so that `npm test` finds it; packages never contain it. */
  readonly launcher: string | undefined
}

const makers: Readonly<Record<Kind, (template: Template) => Readonly<Record<string, string>>>> = {
  plugin: pluginFiles,
  channel: channelFiles,
  provider: providerFiles,
}

/** The name of the plugin, which is also its folder: channels and providers have a prefix. */
export function pluginName({ kind, name }: Pick<Template, 'kind' | 'name'>): string {
  const prefix = kind === 'plugin' ? '' : `${kind}-`
  return name.startsWith(prefix) ? name : `${prefix}${name}`
}

/** The files of a new plugin: code with types, a test, a README, and what npm and an editor need. */
export function templateFiles(template: Template): ReadonlyMap<string, string> {
  const name = pluginName(template)
  const short = name.slice(template.kind === 'plugin' ? 0 : template.kind.length + 1)
  const described = { ...template, name: short, description: template.description.replaceAll(/\s+/g, ' ').trim() }
  return new Map(
    Object.entries({
      'package.json': packageFile(name, described.description),
      'tsconfig.json': `${JSON.stringify({ extends: template.types, compilerOptions: nodeTypes(template.types) }, null, 2)}\n`,
      'README.md': readme(name, described),
      ...makers[template.kind](described),
      ...(template.launcher === undefined ? {} : { [LAUNCHER]: template.launcher }),
    }),
  )
}

/** npm puts this folder on the PATH of scripts. */
export const LAUNCHER = 'node_modules/.bin/svc'

/** The types of Node, which tests import, are those of the installation or of a package beside it. */
function nodeTypes(types: string): object {
  const root = join(types, '../../..')
  return { types: ['node'], typeRoots: [join(root, 'node_modules/@types'), join(root, '../@types')] }
}

function packageFile(name: string, description: string): string {
  const content = {
    name: `svc-${name}`,
    version: '0.1.0',
    description,
    type: 'module',
    keywords: ['svc-plugin'],
    files: ['*.ts', 'pages', '!*.test.ts'],
    scripts: { test: `${COMMAND} test` },
    dependencies: {},
  }
  return `${JSON.stringify(content, null, 2)}\n`
}

/** As readers of the README type it, however it is called on this machine. */
const COMMAND = ['svc', 'plugin'].join(' ')

function readme(name: string, { description, kind }: Template): string {
  const what = kind === 'plugin' ? 'A plugin of svc' : `A ${kind} for svc`
  return `# svc-${name}

${description || `${what}.`}

## Work on it

The daemon loads the folder from \`<home>/plugins\`, or from a folder in \`[plugins] paths\`, and again each time a file
is saved. An error is shown in the terminal of the daemon and by \`${COMMAND} list\`; the code before goes on.

\`\`\`sh
${COMMAND} info ${name}        # what it registered, by name
${COMMAND} doctor .            # checks the folder as an installation does
npm test                       # its tests; \`${COMMAND} test . --watch\` runs them after each change
\`\`\`

What it uses is declared in \`uses\`; whatever is not declared there is refused.

## Give it to others

\`\`\`sh
npm pack                                   # makes svc-${name}-0.1.0.tgz
${COMMAND} add ./svc-${name}-0.1.0.tgz     # or \`npm publish\`, then: ${COMMAND} add svc-${name}
\`\`\`
`
}
