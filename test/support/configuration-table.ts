import { wrap } from './wrap.ts'

/** What the JSON Schema of the configuration says of one key. */
interface Key {
  readonly description?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly restart?: boolean
  readonly file_only?: boolean
  readonly reason?: string
  readonly secret?: boolean
  readonly items?: Key
  readonly properties?: Readonly<Record<string, Key>>
}

interface Section {
  readonly name: string
  readonly description: string
  readonly rows: readonly string[]
}

/** `docs/configuration.md`: every key, from the output of `svc config schema`. */
export function configurationPage(schema: Key): string {
  const { plugins = {}, ...top } = schema.properties ?? {}
  const single = Object.entries(top).filter(([, key]) => !key.properties)
  const sections = [
    toSection('', { description: 'Keys at the top of the file.', properties: Object.fromEntries(single) }),
    ...Object.entries(top)
      .filter(([, key]) => key.properties)
      .map(([name, key]) => toSection(name, key)),
    ...pluginSections(plugins),
  ]
  return `# Configuration

Later sources override earlier ones: built-in defaults, \`svc.config.ts\` in the working folder (or \`--config\`),
\`<home>/config.toml\`, environment variables (\`SVC_API_KEY\`, \`SVC_RATE_LIMIT__TOKENS_PER_MINUTE\`: two underscores for a
section), flags.

\`\`\`toml
# ~/.svc/config.toml
default_provider = "groq"

[rate_limit]
tokens_per_minute = 12000

[plugins.chat]
history_messages = 100
\`\`\`

\`\`\`sh
svc config get --sources             # the current values, and where each comes from
svc config set log_level debug       # writes one key into config.toml
svc config reload                    # the running daemon applies its changed files, all of it or nothing
svc config schema                    # the JSON Schema of this page, including the plugins of this home
\`\`\`

With an invalid value the daemon does not start; the message has the file, the line, the key and the expected form. An
unknown key is reported with the closest known key. A reload with an error changes nothing.

A change of a plugin's section, by \`svc config set\` or \`svc config reload\`, replaces that plugin, unless the plugin
takes it while it runs: of \`[channels.<name>]\` only the accounts that changed are connected anew. What runs in a
built-in one has \`plugins.drain_ms\` (5 seconds) to end; an answer that streams longer is interrupted ("the service is
being replaced") and can be retried. See [Reloading](plugins.md#reloading) for other plugins.

Notes: **restart** keys take effect after a restart, all others at once. **file** keys can only be set in the file, not
over the API, because they weaken a protection or determine what code runs or where keys are sent.

This page is generated: \`npx vitest run --config test/vitest.config.ts test/architecture/docs.test.ts -u\`.

${sections.map(renderSection).join('\n')}`
}

function pluginSections(plugins: Key): readonly Section[] {
  const entries = Object.entries(plugins.properties ?? {})
  const own = entries.filter(([, key]) => !isPlugin(key))
  return [
    toSection('plugins', { ...plugins, properties: Object.fromEntries(own) }),
    ...entries
      .filter(([, key]) => isPlugin(key) && Object.keys(key.properties ?? {}).length > 0)
      .map(([name, key]) => toSection(`plugins.${name}`, key)),
  ]
}
const isPlugin = (key: Key): boolean => key.properties !== undefined

function toSection(name: string, key: Key): Section {
  return { name, description: key.description ?? '', rows: rowsOf([], key) }
}

function rowsOf(path: readonly string[], key: Key): readonly string[] {
  return Object.entries(key.properties ?? {}).flatMap(([name, inner]) => {
    const own = [...path, name]
    return inner.properties ? rowsOf(own, inner) : [renderRow(own.join('.'), inner)]
  })
}

function renderRow(name: string, key: Key): string {
  const marks = [key.restart && 'restart', key.file_only && 'file', key.secret && 'secret'].filter(Boolean).join(', ')
  const cells = [`\`${name}\``, typeOf(key), defaultOf(key), marks, key.description ?? '']
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

function typeOf(key: Key): string {
  if (key.enum) return key.enum.map((value) => `\`${String(value)}\``).join(', ')
  if (key.type === 'array') return `list of ${key.items?.type ?? 'values'}`
  return key.type ?? 'any'
}

function defaultOf({ default: value }: Key): string {
  if (value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0)) return ''
  return `\`${JSON.stringify(value)}\``
}

function renderSection({ name, description, rows }: Section): string {
  const title = name === '' ? 'Top level' : `\`[${name}]\``
  const table = ['| key | type | default | notes | meaning |', '|---|---|---|---|---|', ...rows].join('\n')
  return `## ${title}\n\n${description === '' ? '' : `${wrap(description)}\n\n`}${table}\n`
}
