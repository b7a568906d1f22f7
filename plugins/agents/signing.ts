import { enforced } from 'svc/internal'
import { commandName } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { SigningConfig } from './config.ts'

/** A manifest as it is to be used, and who signed it; `null` when nobody did. */
export interface Opened {
  readonly toml: string
  readonly signedBy: string | null
  /** JSON: what was sent, with its signature. */
  readonly envelope: string | null
}
/** The signer of everything that ships with the daemon. */
export const SHIPPED = 'svc'

/** Checks signatures of manifests: an invalid one is always refused, and `require` refuses a manifest without one. */
export class Signatures {
  readonly #config: SigningConfig
  readonly #audit: Pick<Audit, 'write'>
  constructor(config: SigningConfig, audit: Pick<Audit, 'write'>) {
    this.#config = config
    this.#audit = audit
  }

  get config(): SigningConfig {
    return this.#config
  }

  /**
   * The manifest in an envelope, when it may be used. Throws `invalid_request` for a malformed envelope and for a
   * different `manifest_toml` beside it, and `forbidden`, with an audit entry, for a signature that is not trusted.
   */
  async open(envelope: unknown, beside: string | undefined): Promise<Opened> {
    const { openSigned } = await import('./open-signed.ts')
    return await openSigned(this.#config.trusted_signers, this.#audit, envelope, beside)
  }

  /** Throws `forbidden` when the policy requires a signature and there is none. */
  admit(signedBy: string | null): void {
    if (signedBy !== null || this.#config.policy !== 'require') return
    enforced('manifest_signing')
    throw new Refusal('forbidden', unsigned())
  }

  /** The warning about a manifest without a signature. There is none where nobody could have signed. */
  warnings(signedBy: string | null): readonly string[] {
    const { policy, trusted_signers: trusted } = this.#config
    if (signedBy !== null || policy === 'off') return []
    if (policy === 'require') return [unsigned()]
    return trusted.length > 0 ? ['the manifest is not signed'] : []
  }
}

const unsigned = (): string =>
  'manifest_signing.policy is "require": send the manifest signed by a trusted key as signed_manifest ' +
  `(\`${commandName()} manifest sign\`)`
