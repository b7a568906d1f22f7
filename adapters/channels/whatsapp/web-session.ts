import type { ChannelState } from 'svc/channels'
import { isObject, readJson, SerialQueue } from 'svc/sdk'
import { silentLogger } from './baileys.ts'
import type { AuthState, Baileys, Credentials, Socket } from './baileys.ts'

const CREDENTIALS = 'web-credentials'

/** The credentials and keys of a linked device, in the vault. */
export class WebSession {
  readonly #module: Baileys
  readonly #secrets: ChannelState
  readonly #writes = new SerialQueue()
  #credentials: Credentials

  private constructor(module: Baileys, secrets: ChannelState, credentials: Credentials) {
    this.#module = module
    this.#secrets = secrets
    this.#credentials = credentials
  }

  static async load(module: Baileys, secrets: ChannelState): Promise<WebSession> {
    const stored = await secrets.read(CREDENTIALS)
    const credentials = stored ? (revive(stored, module) as Credentials) : module.initAuthCreds()
    return new WebSession(module, secrets, credentials)
  }

  /** Whether a phone is linked. */
  get isLinked(): boolean {
    return this.#credentials.me !== undefined
  }
  get account(): string {
    const { me } = this.#credentials
    return me?.name ?? me?.id.split(/[:@]/)[0] ?? ''
  }

  /** Connects with the credentials, and keeps what changes of them. */
  connect(): Socket {
    const socket = this.#module.makeWASocket({
      auth: this.#auth(),
      printQRInTerminal: false,
      markOnlineOnConnect: false,
      syncFullHistory: false,
      logger: silentLogger,
    })
    socket.ev.on('creds.update', (change) => {
      this.#credentials = Object.assign(this.#credentials, change)
      void this.#write(CREDENTIALS, this.#credentials)
    })
    return socket
  }
  /** Settles when everything that changed is durable. */
  async flush(): Promise<void> {
    await this.#writes.run(async () => {})
  }
  /** Forgets the phone. */
  async forget(): Promise<void> {
    await this.#secrets.write(CREDENTIALS, '')
  }

  #auth(): AuthState {
    return {
      creds: this.#credentials,
      keys: {
        get: async (type, ids) => {
          const found: Record<string, unknown> = {}
          for (const id of ids) found[id] = await this.#readKey(type, id)
          return found
        },
        set: async (data) => {
          for (const [type, values] of Object.entries(data))
            for (const [id, value] of Object.entries(values)) await this.#write(keyName(type, id), value)
        },
      },
    }
  }

  async #readKey(type: string, id: string): Promise<unknown> {
    const stored = await this.#secrets.read(keyName(type, id))
    if (!stored) return undefined
    const value = revive(stored, this.#module)
    return type === 'app-state-sync-key' ? this.#module.proto.Message.AppStateSyncKeyData.fromObject(value) : value
  }

  #write(name: string, value: unknown): Promise<void> {
    const text = value == null ? '' : JSON.stringify(value, this.#module.BufferJSON.replacer)
    return this.#writes.run(() => this.#secrets.write(name, text))
  }
}

/** The stored value, with its bytes: the reviver of the package sees each value after those within it. */
function revive(stored: string, { BufferJSON }: Baileys): unknown {
  const walk = (key: string, value: unknown): unknown => {
    if (Array.isArray(value))
      return BufferJSON.reviver(
        key,
        value.map((item, index) => walk(String(index), item)),
      )
    if (!isObject(value)) return BufferJSON.reviver(key, value)
    const entries = Object.entries(value).map(([name, item]) => [name, walk(name, item)] as const)
    return BufferJSON.reviver(key, Object.fromEntries(entries))
  }
  return walk('', readJson(stored))
}

function keyName(type: string, id: string): string {
  return `web-${type}-${id}`
}
