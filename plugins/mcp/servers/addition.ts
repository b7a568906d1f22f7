import { isObject, Refusal } from 'svc/sdk'
import { SERVER_NAME } from '../config.ts'
import type { McpServerAddition } from '../contract.ts'
import { readSigningKey } from '../oauth/private-key.ts'
import type { ServerBody, ServerChange } from './body.ts'
import type { ServerConfig } from './spec.ts'

export function toAddition(body: ServerBody): McpServerAddition {
  const { transport, ...rest } = body
  const { type, ...inner } = isObject(transport) ? transport : { type: transport }
  return { ...rest, ...inner, transport: type ?? (rest.url === undefined ? 'stdio' : 'http') }
}

/** The change of a server that was added. What it does not name stays. */
export function toChange(config: ServerConfig, body: ServerChange): McpServerAddition {
  const { name: _, transport, ...rest } = body
  const { type, ...inner } = isObject(transport) ? transport : { type: transport }
  const isOther = type !== undefined && type !== config.transport
  return {
    ...(!isOther && { command: config.command, args: config.args, url: config.url }),
    env: config.env,
    variables: config.variables,
    network: config.network,
    timeout_secs: config.timeout_secs,
    lazy: config.lazy,
    enabled: config.enabled,
    read: config.read,
    write: config.write,
    ...(config.trust === 'operator' && { trust: 'operator' as const }),
    oauth: config.oauth,
    ...rest,
    ...inner,
    name: config.name,
    transport: type ?? config.transport,
  }
}

/** A server of the database. Throws `invalid_request` for a spec that does not fit together. */
export function toConfig(spec: McpServerAddition): ServerConfig {
  const { name, transport, command, url: address } = spec
  checkParts(spec)
  return {
    name,
    transport,
    protocol: transport === 'http' ? 'auto' : 'initialize',
    command,
    args: [...(spec.args ?? [])],
    url: address,
    headers: { ...spec.headers },
    env: [...(spec.env ?? [])],
    credentials: Object.keys(spec.credentials ?? {}),
    variables: spec.variables,
    path: [],
    trust: spec.trust ?? 'confined',
    network: [...(spec.network ?? [])],
    read: [...(spec.read ?? [])],
    write: [...(spec.write ?? [])],
    timeout_secs: spec.timeout_secs ?? 60,
    tool_timeout_secs: {},
    lazy: spec.lazy ?? true,
    enabled: spec.enabled ?? true,
    tool_risk: {},
    risk: undefined,
    trust_annotations: false,
    tools: [],
    origin: spec.origin ?? 'api',
    sampling: false,
    oauth: spec.oauth && toOAuth(spec.oauth),
  }
}

const SHELLS = /^(?:ba|da|z|k|c|tc|fi|a)?sh$|^busybox$|^env$/
const INTERPRETERS = /^(?:node|nodejs|deno|bun|python[\d.]*|perl|ruby|php|lua)$/
const INLINE = /^(?:-c|-e|-p|-E|-r|-pe|-ne|--eval|--print|eval)$/

/** A command over the API starts a program, not a script that came with it. */
function refuseShell(command: string, args: readonly string[]): void {
  const program = command.split(/[/\\]/).at(-1) ?? command
  if (SHELLS.test(program) || (INTERPRETERS.test(program) && args.some((arg) => INLINE.test(arg))))
    throw new Refusal(
      'forbidden',
      `command: "${program}" runs what its arguments say. Name the program of the server itself, ` +
        'or write the server into [[mcp_servers]] of the configuration file',
    )
}

const toOAuth = ({ scopes = [], ...client }: NonNullable<McpServerAddition['oauth']>): ServerConfig['oauth'] => ({
  client_id: client.client_id,
  client_secret: client.client_secret,
  private_key: client.private_key,
  scopes: [...scopes],
  grant: client.grant ?? 'authorization_code',
})

function checkParts(spec: McpServerAddition): void {
  const { name, transport, command, url: address } = spec
  const refuse = (message: string): never => {
    throw new Refusal('invalid_request', message)
  }
  if (spec.oauth?.private_key !== undefined) readSigningKey(spec.oauth.private_key)
  if (!SERVER_NAME.test(name)) refuse('name: lower-case letters, digits and hyphens, at most 32')
  if (transport === 'stdio') {
    if (command === undefined) refuse('command: a stdio server needs one')
    if (address !== undefined) refuse('url: a stdio server has none; set transport to http or sse')
    if (spec.trust !== 'operator') refuseShell(command ?? '', spec.args ?? [])
  } else {
    if (address === undefined) refuse(`url: a server with the transport ${transport} needs one`)
    if (command !== undefined) refuse('command: a server with a url has none; set transport to stdio')
  }
}
