import { hash } from 'node:crypto'
import type { Scope } from '../scope/scope.ts'
import type { AuthFailure } from './bearer.ts'
import { notePresented, presentedBy } from './presented.ts'
import type { Presented } from './presented.ts'
import type { Holder, Principal } from './principal.ts'

/** Bearer credentials that a plugin accepts beside the API key. */
export interface CredentialSource {
  /** Unique among the plugins that are loaded. */
  readonly name: string
  /**
   * Who holds the credential with this digest (SHA-256 of the bearer text, in hexadecimal digits); `undefined` when
   * there is none, or it ended. Asked of memory: at every request with it, and at every event of what was opened with
   * it.
   */
  find(digest: string): Holder | undefined
}
/** What a plugin gets for a source of credentials it registered. */
export interface AcceptedCredentials {
  /** To be called after `find` stopped to know a credential: the sockets and streams opened with it end at once. */
  revoked(): void
}
/** What a plugin gets as `ctx.credentials`. */
export interface PluginCredentials {
  /**
   * Accepts further credentials until the plugin unloads. They change nothing while no API key is set: then nobody
   * needs one.
   */
  accept(source: CredentialSource): AcceptedCredentials
  /** Whether what this principal presented is still accepted; of one who presented no such credential it is. */
  holds(principal: Principal): boolean
  /**
   * Before something secret is compared outside the Authorization header: throws `rate_limit` after too many wrong ones
   * from this address.
   */
  checkAttempts(clientAddress: string): void
  /** It was wrong: counts as a wrong API key does, in the same bucket, and is told to the same listeners. */
  failed(failure: AuthFailure): void
}

interface Accepted {
  readonly source: CredentialSource
  readonly owner: string
  left: boolean
}

/** The further credentials of all plugins. */
export class CredentialRegistry {
  #accepted = new Map<string, Accepted>()
  #kept = new Set<ReadonlySet<string>>()
  #onRevoked: () => void

  /** `onRevoked`: some credential may have ended. */
  constructor(onRevoked: () => void) {
    this.#onRevoked = onRevoked
  }

  accept(scope: Scope, source: CredentialSource): AcceptedCredentials {
    const { name } = source
    if (this.#accepted.get(name)?.left === false)
      throw new Error(`credentials "${name}" are accepted by plugin "${this.#accepted.get(name)?.owner}" already`)
    const accepted: Accepted = { source, owner: scope.name, left: false }
    this.#accepted.set(name, accepted)
    scope.own('credentials', name, () => {
      accepted.left = true
      if (![...this.#kept].some((plugins) => plugins.has(scope.name))) this.#forget(name, accepted)
    })
    return { revoked: () => this.#onRevoked() }
  }

  /**
   * Lets what these plugins accept stay accepted until the returned function is called: a reload must not sign anyone
   * out.
   */
  keep(plugins: ReadonlySet<string>): () => void {
    this.#kept.add(plugins)
    return () => {
      this.#kept.delete(plugins)
      for (const [name, accepted] of this.#accepted)
        if (accepted.left && plugins.has(accepted.owner)) this.#accepted.delete(name)
      // The new copy may know fewer of them.
      this.#onRevoked()
    }
  }

  /** Who presents this text. Costs nothing while nothing is accepted. */
  find(presented: string): Holder | undefined {
    if (this.#accepted.size === 0) return undefined
    const digest = hash('sha256', presented, 'hex')
    for (const name of this.#accepted.keys()) {
      const principal = this.findAgain(name, digest)
      if (principal) return principal
    }
    return undefined
  }
  /** Who presented the credential with this digest, of one source. */
  findAgain(name: string, digest: string): Holder | undefined {
    const holder = this.#accepted.get(name)?.source.find(digest)
    if (!holder) return undefined
    // A copy: the source may hand out the same one for all that its holder was given.
    const principal = { ...holder }
    notePresented(principal, { name, digest })
    return principal
  }
  /** What a principal presented, to find it again; `undefined` of one who presented no such credential. */
  presented(principal: Principal): Presented | undefined {
    return presentedBy(principal)
  }

  /** Whether what this principal presented is still accepted. True of those who presented no such credential. */
  holds(principal: Principal): boolean {
    if (!('id' in principal)) return true
    const presented = presentedBy(principal)
    return presented !== undefined && this.#accepted.get(presented.name)?.source.find(presented.digest) !== undefined
  }

  #forget(name: string, accepted: Accepted): void {
    if (this.#accepted.get(name) !== accepted) return
    this.#accepted.delete(name)
    this.#onRevoked()
  }
}
