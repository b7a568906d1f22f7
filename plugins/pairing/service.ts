import { hash, randomBytes, randomUUID } from 'node:crypto'
import { CodeHasher, makeCode } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { PluginCredentials, RequestFacts, Vault } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Settings } from './config.ts'
import { nameOf } from './devices.ts'
import type { Devices } from './devices.ts'
import type { DeviceRow } from './schema.ts'
import type { PairingStore } from './store.ts'

export interface PairingDeps {
  readonly store: PairingStore
  readonly devices: Devices
  readonly audit: Audit
  readonly vault: Vault
  readonly credentials: PluginCredentials
  readonly settings: Settings
  readonly now: () => number
}
export interface Applicant {
  readonly code: string
  readonly name: string
  readonly platform: string
}

const CODE_KEY = 'code-key'
const WRONG = 'This pairing code is wrong, was used or has expired; request a new one'

/** Codes, and what becomes of them. They are rows: one that waits is not lost with a restart. */
export class Pairing {
  readonly #deps: PairingDeps
  readonly #hasher: CodeHasher
  readonly #queue = new SerialQueue()
  constructor(deps: PairingDeps) {
    this.#deps = deps
    this.#hasher = new CodeHasher(deps.vault, CODE_KEY)
  }

  /** Throws `conflict` when there are too many devices, and `invalid_request` when too many codes are pending. */
  async request(
    by: Pick<RequestFacts, 'principal' | 'clientAddress'>,
  ): Promise<{ readonly code: string; readonly expiresAt: string }> {
    const { store, audit, devices, settings, now } = this.#deps
    this.#refuseWhenFull()
    const code = makeCode()
    const expiresAt = new Date(now() + settings.token_expiry_secs * 1000).toISOString()
    const digest = await this.#hasher.digest(code)
    try {
      await store.commit(
        store.sweep(this.#iso(), settings.max_attempts),
        store.insertCode({ id: randomUUID(), digest, expires_at: expiresAt }, settings.max_pending),
        audit.entry({
          event: 'pairing_changed',
          details:
            `a pairing code requested by ${nameOf(by)}, which can be used until ${expiresAt}; ` +
            `${devices.size} devices are paired`,
        }),
      )
    } catch (error) {
      if ((await store.pending(this.#iso(), settings.max_attempts)) < settings.max_pending) throw error
      throw new Refusal(
        'invalid_request',
        `${settings.max_pending} pairing codes wait already: use one, or wait until they expire`,
        { cause: error },
      )
    }
    return { code, expiresAt }
  }

  /**
   * Registers a device that has a valid code, and returns its key, which is stored nowhere. Throws `rate_limit` after
   * too many wrong codes or keys from this address, `invalid_request` for an unusable code, and `conflict` when the
   * number of devices has reached its limit.
   */
  complete(
    applicant: Applicant,
    from: { readonly clientAddress: string; readonly requestId: string },
  ): Promise<{ readonly device: DeviceRow; readonly key: string }> {
    // Sequential: concurrent guesses are counted before the next one is compared.
    return this.#queue.run(() => this.#complete(applicant, from))
  }

  async #complete(
    { code, name, platform }: Applicant,
    { clientAddress, requestId }: { readonly clientAddress: string; readonly requestId: string },
  ) {
    const { store, devices, audit, credentials, settings } = this.#deps
    credentials.checkAttempts(clientAddress)
    const at = this.#iso()
    const waiting = await store.findCode(await this.#hasher.digest(code), at, settings.max_attempts)
    if (!waiting) {
      credentials.failed({ clientAddress, method: 'POST', path: '/api/pairing/complete', requestId })
      await store.commit(store.countAttempt(at))
      throw new Refusal('invalid_request', WRONG)
    }
    const key = `svc_device_${randomBytes(32).toString('base64url')}`
    const made = {
      id: randomUUID(),
      digest: hash('sha256', key),
      display_name: name,
      platform,
      paired_at: at,
      last_seen: at,
    }
    const device: DeviceRow = { ...made, proof: await devices.proofOf(made) }
    try {
      await store.commit(
        ...devices.insert(
          device,
          store.insertDevice(device, { id: waiting.id, maxAttempts: settings.max_attempts }, settings.max_devices),
        ),
        store.removeCode(waiting.id),
        audit.entry({
          event: 'pairing_changed',
          details: `device ${device.id} "${name}" (${platform}) paired from ${clientAddress}`,
        }),
      )
    } catch (error) {
      // Another process took the code, or the last place.
      await devices.read()
      await this.#refusedWhenFull(clientAddress)
      if (await store.findCode(waiting.digest, at, settings.max_attempts)) throw error
      throw new Refusal('invalid_request', WRONG, { cause: error })
    }
    return { device, key }
  }

  #refuseWhenFull(): void {
    const { devices, settings } = this.#deps
    if (devices.size < settings.max_devices) return
    throw new Refusal(
      'conflict',
      `${settings.max_devices} devices are paired, which is the most: remove one, or raise max_devices under [pairing]`,
    )
  }
  async #refusedWhenFull(clientAddress: string): Promise<void> {
    const { audit, devices } = this.#deps
    try {
      this.#refuseWhenFull()
    } catch (error) {
      await audit.write({
        event: 'pairing_changed',
        details: `a device at ${clientAddress} refused: ${devices.size} devices are paired, which is the most`,
      })
      throw error
    }
  }

  #iso(): string {
    return new Date(this.#deps.now()).toISOString()
  }
}
