import { Refusal } from 'svc/sdk'
import type { McpServerAddition } from '../contract.ts'
import type { ServerSecrets } from './secrets.ts'
import { areFor, noSecrets } from './secrets.ts'
import type { ServerConfig } from './spec.ts'

/** What is secret of a new server. */
export const secretsOf = (spec: McpServerAddition): ServerSecrets => ({
  headers: { ...spec.headers },
  credentials: { ...spec.credentials },
  ...(spec.oauth?.client_secret !== undefined && { oauthClientSecret: spec.oauth.client_secret }),
  ...(spec.oauth?.private_key !== undefined && { oauthPrivateKey: spec.oauth.private_key }),
})

/**
 * The secrets of a server that changes. Values that the change does not name stay, as far as the server still has the
 * variable or header, and goes to where they were entered for: throws `invalid_request` when another origin or another
 * program would get them.
 */
export function mergeSecrets(
  { known: stored, old }: { readonly known: ServerSecrets; readonly old: ServerConfig },
  spec: McpServerAddition,
  config: ServerConfig,
): ServerSecrets {
  const known = areFor(stored, old) && isSameReceiver(old, config) ? stored : noSecrets
  const isKept = (name: string): boolean => config.env.includes(name) || spec.credentials?.[name] !== undefined
  const credentials = Object.entries({ ...known.credentials, ...spec.credentials }).filter(
    ([name]) => spec.env === undefined || isKept(name),
  )
  const headers = Object.entries(spec.headers ?? known.headers).map(
    ([name, value]) => [name, value === '' ? (known.headers[name] ?? '') : value] as const,
  )
  const secrets = {
    headers: Object.fromEntries(headers),
    credentials: Object.fromEntries(credentials),
    ...ofClient(config.oauth?.client_id === old.oauth?.client_id ? known : noSecrets, spec, config),
  }
  if (known !== stored) refuseMissing({ stored, old }, secrets, spec, config)
  return secrets
}

function ofClient(
  known: ServerSecrets,
  spec: McpServerAddition,
  config: ServerConfig,
): Pick<ServerSecrets, 'oauthClientSecret' | 'oauthPrivateKey'> {
  if (!config.oauth) return {}
  // The one takes the place of the other.
  const isNew = (spec.oauth?.client_secret ?? spec.oauth?.private_key) !== undefined
  const oauthClientSecret = isNew ? spec.oauth?.client_secret : known.oauthClientSecret
  const oauthPrivateKey = isNew ? spec.oauth?.private_key : known.oauthPrivateKey
  return {
    ...(oauthClientSecret !== undefined && { oauthClientSecret }),
    ...(oauthPrivateKey !== undefined && { oauthPrivateKey }),
  }
}

/** Whether what was entered for the one server would reach the same program, or the same origin. */
function isSameReceiver(old: ServerConfig, next: ServerConfig): boolean {
  if (old.transport === 'stdio' || next.transport === 'stdio')
    return old.command === next.command && JSON.stringify(old.args) === JSON.stringify(next.args)
  return new URL(old.url ?? '').origin === new URL(next.url ?? '').origin
}

/** What the new receiver would have to get, and nobody said. */
function refuseMissing(
  { stored, old }: { readonly stored: ServerSecrets; readonly old: ServerConfig },
  next: ServerSecrets,
  spec: McpServerAddition,
  config: ServerConfig,
): void {
  const headers = Object.keys(stored.headers).filter((name) =>
    spec.headers === undefined ? config.transport !== 'stdio' : next.headers[name] === '',
  )
  const variables = Object.keys(stored.credentials).filter(
    (name) => config.transport === 'stdio' && config.env.includes(name) && next.credentials[name] === undefined,
  )
  const client = Object.entries({
    client_secret: 'oauthClientSecret',
    private_key: 'oauthPrivateKey',
  } as const).flatMap(([key, name]) =>
    config.oauth?.client_id === old.oauth?.client_id && stored[name] !== undefined && next[name] === undefined
      ? [`oauth.${key}`]
      : [],
  )
  const missing = [
    ...headers.map((name) => `headers.${name}`),
    ...variables.map((name) => `credentials.${name}`),
    ...client,
  ]
  if (missing.length > 0)
    throw new Refusal(
      'invalid_request',
      `${missing.join(', ')}: entered for another ${config.transport === 'stdio' ? 'program' : 'address'}. ` +
        'Send the value again, or leave it out by name: "headers": {}, "env": [] or "oauth": {}',
    )
}
