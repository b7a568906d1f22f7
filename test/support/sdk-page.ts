import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildDeclarations, resolveDeclaration } from './declarations.ts'
import { readExports } from './documented.ts'
import type { Documented, FileExports } from './documented.ts'
import { wrap } from './wrap.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
/** A longer signature is cut before its result, and left out when that does not help. */
const MAX_SIGNATURE = 240

export interface SdkGroup {
  readonly title: string
  readonly exports: readonly Documented[]
}

/** What `svc/sdk` exports, in the order and the groups of `core/sdk.ts`. */
export async function readSdk(): Promise<readonly SdkGroup[]> {
  const source = await readFile(join(repository, 'core/sdk.ts'), 'utf8')
  const [, ...sections] = source.split(/^\/\/ /m)
  return Promise.all(
    sections.map(async (section) => {
      const [title = ''] = section.split('\n')
      const exports = await Promise.all(statementsOf(section).map(resolveStatement))
      return { title, exports: exports.flat() }
    }),
  )
}

interface ExportStatement {
  /** `undefined` for `export * as …`. */
  readonly names: readonly string[] | undefined
  readonly namespace: string
  readonly from: string
}

function statementsOf(section: string): readonly ExportStatement[] {
  return [...section.matchAll(/export (?:type )?(?:\{([^}]*)\}|\* as (\w+)) from '([^']+)'/g)].map(
    ([, names, namespace = '', from = '']) => ({
      names: names
        ?.split(',')
        .map((name) => name.trim())
        .filter(Boolean),
      namespace,
      from,
    }),
  )
}

async function resolveStatement({ names, namespace, from }: ExportStatement): Promise<readonly Documented[]> {
  const folder = await buildDeclarations()
  const file = resolveDeclaration('core/sdk.d.ts', from)
  if (names !== undefined) return Promise.all(names.map((name) => resolveName(folder, file, name)))
  const { declared } = await readFileExports(folder, file)
  return [...declared.values()].map((found) => ({ ...found, name: `${namespace}.${found.name}` }))
}

const read = new Map<string, FileExports>()
async function readFileExports(folder: string, file: string): Promise<FileExports> {
  const found = read.get(file) ?? readExports(await readFile(join(folder, file), 'utf8'))
  read.set(file, found)
  return found
}

async function resolveName(folder: string, file: string, name: string): Promise<Documented> {
  const { declared, taken } = await readFileExports(folder, file)
  const found = declared.get(name)
  if (found) return found
  const elsewhere = taken.get(name)
  if (!elsewhere) throw new Error(`${file} does not export ${name}`)
  return resolveName(folder, resolveDeclaration(file, elsewhere.from), elsewhere.original)
}

/** Exports and fields without a comment, such as `Route.status`. */
export function findUndocumented(groups: readonly SdkGroup[]): readonly string[] {
  return groups
    .flatMap(({ exports }) => exports)
    .flatMap(({ name, doc, members }) => [
      ...(doc === '' ? [name] : []),
      ...members.filter((member) => member.doc === '').map((member) => `${name}.${member.name}`),
    ])
}

/** `docs/sdk.md`: every name of `svc/sdk`. */
export async function sdkPage(): Promise<string> {
  const groups = await readSdk()
  const sections = groups.map(
    ({ title, exports }) => `## ${title}\n\n${exports.map((found) => renderExport(found)).join('\n')}`,
  )
  return `# svc/sdk

Everything a plugin imports from \`svc/sdk\`. [Plugins](plugins.md) is the guide, [Hooks](hooks.md) lists what a plugin
can listen to. The names follow the version of the interface: see \`API_VERSION\`.

${groups.map(({ title }) => `- [${title}](#${anchorOf(title)})`).join('\n')}

This page is generated: \`npx vitest run --config test/vitest.config.ts test/architecture/reference.test.ts -u\`.

${sections.join('\n')}`
}

function renderExport({ name, kind, signature, doc, members }: Documented): string {
  const short = shorten(signature)
  const code = short === '' || kind === 'interface' || short === name ? '' : `\n\`\`\`ts\n${short}\n\`\`\`\n`
  const rows = members.map(
    (member) => `| \`${escapeCell(shorten(member.signature) || member.name)}\` | ${cell(member.doc)} |`,
  )
  const table = rows.length === 0 ? '' : `\n| member | |\n|---|---|\n${rows.join('\n')}\n`
  return `### ${name}\n\n${wrap(`*${kind}.* ${doc}`)}\n${code}${table}`
}

function shorten(signature: string): string {
  if (signature.length <= MAX_SIGNATURE) return signature
  const withoutResult = /^(?:[^()]|\([^()]*\))*?\((?:[^()]|\([^()]*\))*\)(?=:)/.exec(signature)?.[0] ?? ''
  return withoutResult.length <= MAX_SIGNATURE ? withoutResult : ''
}

const escapeCell = (code: string): string => code.replaceAll('|', '\\|')
const cell = (doc: string): string => escapeCell(doc.replaceAll(/\s*\n+\s*/g, ' '))

function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}
