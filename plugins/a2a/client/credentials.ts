import { readOwnJson, readVariable } from 'svc/internal'
import { commandLine, isObject, Refusal } from 'svc/sdk'
import type { Statement, Tools, Vault } from 'svc/sdk'
import type { Auth } from './config.ts'
import type { ExternalAgent } from './model.ts'

export interface CredentialsDeps {
  readonly vault: Vault
  readonly tools: Pick<Tools, 'protectSecret'>
}
const DEFAULT_HEADER = 'x-api-key'
const nameOf = ({ id }: Pick<ExternalAgent, 'id'>): string => `agent-${id}`

/** What the daemon proves itself with to agents elsewhere. It is read for each message and kept nowhere else. */
export class Credentials {
  readonly #deps: CredentialsDeps
  constructor(deps: CredentialsDeps) {
    this.#deps = deps
  }

  /** The headers for an agent; none where it wants no proof. Throws when a secret is missing that the file names. */
  async headers(agent: ExternalAgent, auth: Auth | undefined): Promise<Readonly<Record<string, string>>> {
    const stored = await this.#stored(agent)
    const secret = auth?.env === undefined ? stored?.secret : readVariable(auth.env)
    if (secret === undefined || secret === '') {
      if (!auth) return {}
      const where = auth.env === undefined ? commandLine(`a2a credential ${agent.id}`) : `the variable ${auth.env}`
      throw new Refusal('conflict', `There is no secret for "${agent.name}": set it with ${where}.`)
    }
    if (auth?.env === undefined) requireSameOrigins(agent, stored?.origins ?? [])
    this.#deps.tools.protectSecret(secret)
    const header = auth ? (auth.type === 'header' ? (auth.header ?? DEFAULT_HEADER) : undefined) : stored?.header
    return header === undefined ? { authorization: `Bearer ${secret}` } : { [header.toLowerCase()]: secret }
  }

  /** `header`: the header it is sent in; `Authorization: Bearer` when undefined. */
  async store(
    agent: ExternalAgent,
    secret: string,
    header: string | undefined,
    entries: readonly Statement[],
  ): Promise<void> {
    const stored = { secret, header, origins: originsOf(agent) }
    await this.#deps.vault.write(nameOf(agent), JSON.stringify(stored), entries)
  }
  async remove(agent: ExternalAgent): Promise<void> {
    await this.#deps.vault.remove(nameOf(agent))
  }

  async #stored(agent: ExternalAgent): Promise<StoredCredential | undefined> {
    const text = await this.#deps.vault.read(nameOf(agent))
    const value = text === undefined ? undefined : readOwnJson(text)
    if (!isObject(value) || typeof value['secret'] !== 'string') return undefined
    const { secret, header, origins } = value
    return {
      secret,
      origins: Array.isArray(origins) ? origins.filter((each) => typeof each === 'string') : [],
      ...(typeof header === 'string' && { header }),
    }
  }
}

interface StoredCredential {
  readonly secret: string
  readonly header?: string
  /** Where it may be sent: where messages to the agent went when it was stored. */
  readonly origins: readonly string[]
}
function originsOf({ url, view }: ExternalAgent): readonly string[] {
  const urls = view?.endpoints.map((each) => each.url) ?? [url]
  return [...new Set(urls.map((each) => new URL(each).origin))]
}
/** A card that names other addresses later does not get the secret that was meant for those before. */
function requireSameOrigins(agent: ExternalAgent, origins: readonly string[]): void {
  const foreign = originsOf(agent).find((origin) => !origins.includes(origin))
  if (foreign === undefined) return
  throw new Refusal(
    'conflict',
    `The secret for "${agent.name}" was not stored for ${foreign}, where its messages go now: ` +
      `store it again with ${commandLine(`a2a credential ${agent.id}`)}.`,
  )
}
