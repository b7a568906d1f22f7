import { isAbsolute, relative, sep } from 'node:path'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { McpProgram, McpProgramRights, McpServerAddition } from '../mcp/contract.ts'
import { placeholders, SERVER_FOLDER } from './catalog/template.ts'
import type { Template } from './catalog/template.ts'
import type { Settings } from './config.ts'
import type { Entered } from './variables.ts'

export interface AdditionDeps {
  readonly settings: Pick<Settings, 'trusted' | 'read' | 'write' | 'fetch_packages' | 'npm_hosts' | 'pypi_hosts'>
  /** Whether a program of this name is installed. */
  readonly hasProgram: (name: string) => boolean
  /** The folder of an MCP server of this name. */
  readonly folderOf: (id: string) => string
}
type Program = Extract<Template['transport'], { type: 'stdio' }>
type Hosted = Exclude<Template['transport'], Program>
type Values = ReadonlyMap<string, string>

/**
 * The MCP server of an integration. Throws `invalid_request` for an address that is none, and `conflict` when its
 * program is not installed or cannot run confined.
 */
export function toAddition(id: string, template: Template, entered: Entered, deps: AdditionDeps): McpServerAddition {
  const values = withDefaults(template, entered.values, deps.folderOf(id))
  const origin = `integration:${template.id}`
  if (entered.access === 'login') return { name: id, origin, ...loginServer(template, values) }
  const { transport } = template
  if (transport.type === 'stdio') return { name: id, origin, ...programServer(id, template, transport, values, deps) }
  return { name: id, origin, ...hostedServer(transport, values) }
}

function withDefaults(template: Template, entered: Values, folder: string): Values {
  const fixed: Values = new Map([[SERVER_FOLDER, folder]])
  const values = new Map([...fixed, ...entered])
  for (const { name, default: fallback } of template.required_env)
    if (fallback !== undefined && !values.has(name)) values.set(name, render(fallback, fixed) ?? '')
  return values
}

function programServer(
  id: string,
  template: Template,
  transport: Program,
  values: Values,
  deps: AdditionDeps,
): Omit<McpServerAddition, 'name'> {
  const { settings } = deps
  const isTrusted = settings.trusted.includes(id)
  if (transport.direct_network && !isTrusted)
    throw new Refusal(
      'conflict',
      `${template.name} connects to its server directly, which a confined program cannot: ` +
        `add "${id}" to trusted in [plugins.integrations] of the configuration file`,
    )
  if (!isTrusted) refuseClosedPaths(id, template, values, deps)
  const { command, args, hosts } = findProgram(transport, deps)
  const { credentials, variables } = environmentOf(template, transport, values)
  return omitUndefined({
    transport: 'stdio' as const,
    command,
    args: [...args, ...transport.args.flatMap((text) => render(text, values) ?? [])],
    env: [...Object.keys(credentials), ...Object.keys(variables)],
    credentials,
    variables,
    network: [...transport.hosts.flatMap((text) => render(text, values) ?? []), ...hosts],
    lazy: true,
  })
}

/**
 * What the configuration file lets the program of an integration do, if it is the one that its template starts: who can
 * write to the database only can put another one into its row. `undefined` for another one.
 */
export function rightsOf(template: Template, program: McpProgram, deps: AdditionDeps): McpProgramRights | undefined {
  const { settings } = deps
  const { name: id } = program
  const rights = omitUndefined({
    trust: settings.trusted.includes(id) ? ('operator' as const) : undefined,
    read: settings.read[id],
    write: settings.write[id],
  })
  return Object.keys(rights).length === 0 || isOf(template, program, deps.folderOf(id)) ? rights : undefined
}

function isOf(
  { transport, required_env: required }: Template,
  { command, args, env }: McpProgram,
  folder: string,
): boolean {
  if (transport.type !== 'stdio') return false
  const names = new Set([...required.map(({ name }) => name), ...Object.keys(transport.env)])
  if (!env.every((name) => names.has(name))) return false
  const own = transport.args.map((text) => ({ pattern: patternOf(text, folder), isOptional: text.includes('{') }))
  return waysToStart(transport).some((way) => way.command === command && areArguments(args, [...way.args, ...own]))
}
interface Argument {
  readonly pattern: RegExp
  readonly isOptional: boolean
}
/** The installed program, and the runner of its package. It may have been added in another version. */
function waysToStart({ command, package: source }: Program): readonly { command: string; args: Argument[] }[] {
  const installed = { command, args: [] }
  if (source === undefined) return [installed]
  const fixed = (pattern: string): Argument => ({ pattern: new RegExp(`^${pattern}$`), isOptional: false })
  const name = RegExp.escape(source.name)
  // A number only: npm takes addresses and names of other packages in its place.
  const version = String.raw`\d[\w.+-]*`
  const args =
    source.runner === 'npx'
      ? [fixed('-y'), fixed(`${name}@${version}`)]
      : [fixed('--from'), fixed(`${name}==${version}`), fixed(RegExp.escape(command))]
  return [installed, { command: source.runner, args }]
}
/** A text with any values in it. */
function patternOf(text: string, folder: string): RegExp {
  const parts = text.replaceAll(`{${SERVER_FOLDER}}`, () => folder).split(/\{[A-Z_][A-Z0-9_]*(?::[a-z]+)?\}/)
  return new RegExp(`^${parts.map((part) => RegExp.escape(part)).join('.*')}$`, 's')
}
/** An argument is missing if its value was not entered. */
function areArguments(args: readonly string[], expected: readonly Argument[]): boolean {
  const rest = [...args]
  for (const { pattern, isOptional } of expected) {
    if (rest[0] !== undefined && pattern.test(rest[0])) rest.shift()
    else if (!isOptional) return false
  }
  return rest.length === 0
}

/** A confined program would only fail, and few say why. */
function refuseClosedPaths(
  id: string,
  { required_env: required }: Template,
  values: Values,
  { settings, folderOf }: AdditionDeps,
): void {
  for (const { name, path: access } of required) {
    const value = values.get(name)
    if (access === undefined || value === undefined) continue
    if (!isAbsolute(value))
      throw new Refusal('invalid_request', `credentials.${name}: expected an absolute path such as /srv/documents`)
    const writable = [folderOf(id), ...(settings.write[id] ?? [])]
    const open = access === 'write' ? writable : [...writable, ...(settings.read[id] ?? [])]
    if (open.some((folder) => isInside(value, folder))) continue
    throw new Refusal(
      'conflict',
      `credentials.${name}: its program may not ${access} ${value}: name the folder in ` +
        `plugins.integrations.${access}.${id} of the configuration file`,
    )
  }
}
function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`)
}

/** The variables of a program, those with a secret in them apart: the vault keeps these. */
function environmentOf(
  { required_env: required, oauth }: Template,
  transport: Program,
  values: Values,
): Readonly<Record<'credentials' | 'variables', Readonly<Record<string, string>>>> {
  const { id: clientId, secret: clientSecret } = oauth?.client ?? {}
  const secrets = new Set(required.filter((each) => each.is_secret).map(({ name }) => name))
  const own = required
    .filter(({ name }) => name !== clientId && name !== clientSecret)
    .map(({ name }) => ({ name, text: `{${name}}` }))
  const texts = [...own, ...Object.entries(transport.env).map(([name, text]) => ({ name, text }))]
  const parts = { credentials: new Map<string, string>(), variables: new Map<string, string>() }
  for (const { name, text } of texts) {
    const value = render(text, values)
    if (value === undefined || value === '') continue
    const isSecret = [...text.matchAll(placeholders)].some(([, used = '']) => secrets.has(used))
    parts[isSecret ? 'credentials' : 'variables'].set(name, value)
  }
  return { credentials: Object.fromEntries(parts.credentials), variables: Object.fromEntries(parts.variables) }
}

/** The installed program, or else the runner that fetches its package. */
function findProgram(
  { command, package: source }: Program,
  { settings, hasProgram }: AdditionDeps,
): { readonly command: string; readonly args: readonly string[]; readonly hosts: readonly string[] } {
  if (isAbsolute(command) || hasProgram(command)) return { command, args: [], hosts: [] }
  if (source === undefined) throw new Refusal('conflict', `The program ${command} is not installed on this machine`)
  const { runner, name, version } = source
  if (!settings.fetch_packages || !hasProgram(runner))
    throw new Refusal(
      'conflict',
      `The program ${command} is not installed on this machine, and ` +
        (settings.fetch_packages ? `neither is ${runner}, which would fetch it` : 'fetch_packages is off') +
        `: install the package ${name} of ${runner === 'npx' ? 'npm' : 'PyPI'}`,
    )
  return runner === 'npx'
    ? { command: runner, args: ['-y', `${name}@${version}`], hosts: settings.npm_hosts }
    : { command: runner, args: ['--from', `${name}==${version}`, command], hosts: settings.pypi_hosts }
}

function hostedServer({ type, url, headers }: Hosted, values: Values): Omit<McpServerAddition, 'name'> {
  const rendered = Object.entries(headers).flatMap(([name, text]) => {
    const value = render(text, values)
    return value === undefined ? [] : [[name, value]]
  })
  return { transport: type, url: renderAddress(url, values), headers: Object.fromEntries(rendered) }
}

function loginServer({ transport, oauth }: Template, values: Values): Omit<McpServerAddition, 'name'> {
  const url = oauth?.url ?? (transport.type === 'stdio' ? '' : transport.url)
  const { id, secret } = oauth?.client ?? {}
  return {
    transport: transport.type === 'sse' ? 'sse' : 'http',
    url: renderAddress(url, values),
    oauth: omitUndefined({
      client_id: id === undefined ? undefined : values.get(id),
      client_secret: secret === undefined ? undefined : values.get(secret),
      scopes: oauth?.scopes,
    }),
  }
}

/** A text with the values in it; `undefined` when one of them was not entered. */
function render(text: string, values: Values, encode: (value: string) => string = String): string | undefined {
  let isComplete = true
  const rendered = text.replaceAll(placeholders, (_, name: string, part: string | undefined) => {
    const value = values.get(name)
    isComplete &&= value !== undefined
    return encode(part === undefined ? (value ?? '') : partOf(name, value ?? '', part))
  })
  return isComplete ? rendered : undefined
}

/** A value inside an address stays in its place; one that the address begins with is the address of a server. */
function renderAddress(url: string, values: Values): string {
  const base = /^\{[A-Z0-9_]+\}/.exec(url)?.[0] ?? ''
  const rest = render(url.slice(base.length), values, encodeURIComponent) ?? ''
  return `${(render(base, values) ?? '').replace(/\/+$/, '')}${rest}`
}

function partOf(name: string, value: string, part: string): string {
  if (value === '') return ''
  if (!URL.canParse(value))
    throw new Refusal('invalid_request', `credentials.${name}: expected an address such as https://example.org`)
  const { host, hostname, port, username, password, pathname } = new URL(value)
  const parts: Readonly<Record<string, string>> = { host, hostname, port, username, password, path: pathname }
  try {
    return decodeURIComponent(parts[part] ?? '')
  } catch (cause) {
    throw new Refusal('invalid_request', `credentials.${name}: write a % in an address as %25`, { cause })
  }
}
