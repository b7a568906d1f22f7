import { sources } from '../architecture/sources.ts'
import { oneLine, readExports } from './documented.ts'

export interface DocumentedHook {
  readonly id: string
  readonly kind: string
  readonly name: string
  /** The type of what listeners get, in one line. */
  readonly payload: string
  readonly doc: string
  /** The file that declares it. */
  readonly path: string
}

/** Every hook of core and of the built-in plugins, by id. */
export function readHooks(): readonly DocumentedHook[] {
  return sources('core', 'plugins')
    .flatMap(({ path, text }) => {
      const found = [
        ...text.matchAll(/^export const (\w+) = (notify|gate|transform)<([\s\S]*?)>\(\s*'([^']+)',?\s*\)/gm),
      ]
      if (found.length === 0) return []
      const { declared } = readExports(text)
      return found.map(([, name = '', kind = '', type = '', id = '']) => {
        const fields = declared.get(type)?.members.map((member) => member.name) ?? []
        const payload =
          fields.length === 0
            ? oneLine(separateFields(type)).replaceAll('readonly ', '')
            : `${type} { ${fields.join(', ')} }`
        return { id, kind, name, payload, doc: declared.get(name)?.doc ?? '', path }
      })
    })
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
}

/** Fields on lines of their own have no separator in our sources. */
const separateFields = (type: string): string => type.replaceAll(/([^\s{;|])\n\s+(?![}|])/g, '$1; ')

/** `docs/hooks.md`: what a plugin can listen to. */
export function hooksPage(): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s*\n+\s*/g, ' ')
  const rows = readHooks().map(
    ({ id, kind, name, payload, doc, path }) =>
      `| \`${id}\` | ${kind} | \`${cell(payload)}\` | ${cell(doc)} | [\`${name}\`](../${path}) |`,
  )
  return `# Hooks

A plugin listens with \`ctx.hooks.on(hook, listener)\`. There are three kinds:

- \`notify\`: it happened. A listener that fails is logged, and the others still run.
- \`gate\`: may it happen? A listener that throws vetoes it; the message of a \`Refusal\` reaches the caller.
- \`transform\`: a value on its way. A listener returns the value for the next one; what it throws fails the operation.

A plugin outside this repository makes the hook from its id, with the part of the payload it uses:

\`\`\`ts
const AgentSpawned = notify<{ readonly agent: { readonly name: string } }>('agents:spawned')
hooks.on(AgentSpawned, ({ agent }) => log.info(agent.name))
\`\`\`

| id | kind | payload | when | declared as |
|---|---|---|---|---|
${rows.join('\n')}

This page is generated: \`npx vitest run --config test/vitest.config.ts test/architecture/reference.test.ts -u\`.
`
}
