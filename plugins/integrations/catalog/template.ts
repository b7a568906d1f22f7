import * as v from 'valibot'
import { line } from 'svc/sdk'

const MAX_ENTRIES = 32
const id = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9][a-z0-9-]{0,31}$/, 'lower-case letters, digits and hyphens, 32 at most'),
)
const variableName = v.pipe(
  v.string(),
  v.regex(/^[A-Z_][A-Z0-9_]{0,127}$/, 'the name of an environment variable, in capitals'),
)
const text = v.pipe(v.string(), v.maxLength(4_000))
const address = v.pipe(line(2_048), v.regex(/^https?:\/\//, 'an http or https address'))
const listOf = <S extends v.GenericSchema>(item: S) => v.pipe(v.array(item), v.maxLength(MAX_ENTRIES))

/** What a person has to enter before an integration can start. */
export const Variable = v.strictObject({
  name: variableName,
  label: line(100),
  help: v.optional(text, ''),
  is_secret: v.optional(v.boolean(), true),
  /** Where a person gets the value. */
  get_url: v.optional(address),
  /** Used when nothing is entered. A variable with a default, or with `optional`, can be left out. */
  default: v.optional(line(1_000)),
  optional: v.optional(v.boolean(), false),
  /** It is the absolute path of a file or a folder, which the program reads or writes. */
  path: v.optional(v.picklist(['read', 'write'])),
})
export type Variable = v.InferOutput<typeof Variable>

/** A package that brings the program where it is not installed: `npx` runs those of npm, `uvx` those of PyPI. */
const Package = v.strictObject({ runner: v.picklist(['npx', 'uvx']), name: line(200), version: line(50) })
const Program = v.strictObject({
  type: v.literal('stdio'),
  /** The name of an installed program, or an absolute path. */
  command: line(1_000),
  args: v.optional(listOf(line(2_000)), []),
  /** Variables of the program in addition to those of `required_env`, which it gets under their own names. */
  env: v.optional(v.record(variableName, v.string()), {}),
  /** Hosts it may reach. */
  hosts: v.optional(listOf(line(300)), []),
  /** It opens connections that do not go through a proxy, so that it cannot run confined. */
  direct_network: v.optional(v.boolean(), false),
  package: v.optional(Package),
})
const Hosted = v.strictObject({
  type: v.picklist(['http', 'sse']),
  url: address,
  headers: v.optional(v.record(v.string(), v.string()), {}),
})

/** Sign-in with the vendor instead of a secret. */
const OAuth = v.strictObject({
  provider: line(50),
  /** The server that people sign in to; the address of `transport` when absent. */
  url: v.optional(address),
  scopes: v.optional(listOf(line(200)), []),
  auth_url: v.optional(address),
  token_url: v.optional(address),
  /** The vendor knows only clients that were registered with it by hand: names of the variables with id and secret. */
  client: v.optional(v.strictObject({ id: variableName, secret: v.optional(variableName) })),
})

/**
 * A kind of integration. `{NAME}` in an argument, a variable, a host, an address or a header is the value of a variable;
 * `{NAME:hostname}` is a part of an address; `{SERVER_FOLDER}` is the folder of the program.
 */
export const Template = v.pipe(
  v.strictObject({
    id,
    name: line(100),
    description: line(500),
    category: v.pipe(line(32), v.regex(/^[a-z][a-z-]*$/, 'one word in lower case')),
    icon: v.optional(v.pipe(v.string(), v.maxLength(16)), ''),
    tags: v.optional(listOf(line(50)), []),
    transport: v.variant('type', [Program, Hosted]),
    required_env: v.optional(listOf(Variable), []),
    oauth: v.optional(OAuth),
    health_check: v.optional(
      v.strictObject({
        interval_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(5), v.maxValue(86_400)), 60),
        unhealthy_threshold: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100)), 3),
      }),
      {},
    ),
    setup_instructions: v.optional(text, ''),
  }),
  v.check(
    (template) => exposedSecrets(template).length === 0,
    'a secret may stand in a variable or a header only: arguments and addresses can be read by other programs',
  ),
  v.check(
    (template) => unknownNames(template).length === 0,
    'a placeholder names a variable that is not in required_env',
  ),
)
export type Template = v.InferOutput<typeof Template>
export type TemplateInput = v.InferInput<typeof Template>

export const SERVER_FOLDER = 'SERVER_FOLDER'
/** The parts of an address that a placeholder can name. `host` is with the port. */
export const ADDRESS_PARTS = ['host', 'hostname', 'port', 'username', 'password', 'path'] as const
const PUBLIC_PARTS: ReadonlySet<string> = new Set(['host', 'hostname', 'port'])
export const placeholders = /\{([A-Z_][A-Z0-9_]*)(?::([a-z]+))?\}/g

interface Checked {
  readonly transport:
    | {
        readonly type: 'stdio'
        readonly args: readonly string[]
        readonly env: Readonly<Record<string, string>>
        readonly hosts: readonly string[]
      }
    | { readonly type: 'http' | 'sse'; readonly url: string; readonly headers: Readonly<Record<string, string>> }
  readonly required_env: readonly { readonly name: string; readonly is_secret: boolean }[]
  readonly oauth?: { readonly url?: string | undefined; readonly client?: unknown } | undefined
}

function placeholdersOf(texts: readonly string[]): readonly { readonly name: string; readonly part: string }[] {
  return texts.flatMap((each) => [...each.matchAll(placeholders)].map(([, name = '', part = '']) => ({ name, part })))
}
function openTexts({ transport, oauth }: Checked): readonly string[] {
  const own = transport.type === 'stdio' ? [...transport.args, ...transport.hosts] : [transport.url]
  return oauth?.url === undefined ? own : [...own, oauth.url]
}
function exposedSecrets(template: Checked): readonly string[] {
  const secrets = new Set(template.required_env.filter(({ is_secret }) => is_secret).map(({ name }) => name))
  return placeholdersOf(openTexts(template))
    .filter(({ name, part }) => secrets.has(name) && !PUBLIC_PARTS.has(part))
    .map(({ name }) => name)
}
function unknownNames(template: Checked): readonly string[] {
  const { transport } = template
  const closed = Object.values(transport.type === 'stdio' ? transport.env : transport.headers)
  const known = new Set([SERVER_FOLDER, ...template.required_env.map(({ name }) => name)])
  return placeholdersOf([...openTexts(template), ...closed])
    .filter(({ name, part }) => !known.has(name) || (part !== '' && !ADDRESS_PARTS.some((each) => each === part)))
    .map(({ name }) => name)
}
