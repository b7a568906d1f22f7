import { isObject, Refusal } from 'svc/sdk'
import { algorithmOf, SERVER_NAME, SIGNING_KEY } from '../config.ts'
import type { McpServerAddition } from '../contract.ts'
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
    // Their values come from the vault, if they may go where the change sends them.
    ...((type ?? config.transport) !== 'stdio' &&
      config.oauth && { oauth: { ...config.oauth, client_secret: undefined, private_key: undefined } }),
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
    trust: 'confined',
    network: [...(spec.network ?? [])],
    read: [],
    write: [],
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

const toOAuth = ({ scopes = [], ...client }: NonNullable<McpServerAddition['oauth']>): ServerConfig['oauth'] => ({
  client_id: client.client_id,
  client_secret: client.client_secret,
  private_key: client.private_key,
  scopes: [...scopes],
  grant: client.grant ?? 'authorization_code',
})

/** Whether the parts of a spec without secrets are those of one server. */
export function fitsTogether(spec: Omit<McpServerAddition, 'name' | 'credentials'>): boolean {
  try {
    checkParts({ ...spec, name: 'any', credentials: {} })
    return true
  } catch (error) {
    if (error instanceof Refusal) return false
    throw error
  }
}

function checkParts(spec: McpServerAddition): void {
  const { name, transport, command, url: address } = spec
  const refuse = (message: string): never => {
    throw new Refusal('invalid_request', message)
  }
  const { private_key: key } = spec.oauth ?? {}
  if (key !== undefined && algorithmOf(key) === undefined) refuse(`oauth.private_key: ${SIGNING_KEY}`)
  if (!SERVER_NAME.test(name)) refuse('name: lower-case letters, digits and hyphens, at most 32')
  if (transport === 'stdio') {
    if (command === undefined) refuse('command: a stdio server needs one')
    if (address !== undefined) refuse('url: a stdio server has none; set transport to http or sse')
    if (spec.oauth) refuse('oauth: a stdio server has no login; its variables hold credentials')
  } else {
    if (address === undefined) refuse(`url: a server with the transport ${transport} needs one`)
    if (command !== undefined) refuse('command: a server with a url has none; set transport to stdio')
    if (spec.oauth && Object.keys(spec.headers ?? {}).some((each) => each.toLowerCase() === 'authorization'))
      refuse('oauth: the header Authorization stands for a login; leave out one of them')
  }
}
