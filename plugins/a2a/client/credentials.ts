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
    await this.#deps.vault.write(nameOf(agent), JSON.stringify({ secret, header }), entries)
  }
  async remove(agent: ExternalAgent): Promise<void> {
    await this.#deps.vault.remove(nameOf(agent))
  }

  async #stored(agent: ExternalAgent): Promise<{ readonly secret: string; readonly header?: string } | undefined> {
    const text = await this.#deps.vault.read(nameOf(agent))
    const value = text === undefined ? undefined : readOwnJson(text)
    if (!isObject(value) || typeof value['secret'] !== 'string') return undefined
    return { secret: value['secret'], ...(typeof value['header'] === 'string' && { header: value['header'] }) }
  }
}
