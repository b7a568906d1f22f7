/** The part of `@whiskeysockets/baileys` that is used. It is an optional peer dependency: loaded when it is needed. */
export interface Baileys {
  makeWASocket(options: {
    readonly auth: AuthState
    readonly printQRInTerminal: false
    readonly markOnlineOnConnect: false
    readonly syncFullHistory: false
    readonly logger: SilentLogger
  }): Socket
  initAuthCreds(): Credentials
  readonly BufferJSON: {
    replacer(key: string, value: unknown): unknown
    reviver(key: string, value: unknown): unknown
  }
  readonly proto: { readonly Message: { readonly AppStateSyncKeyData: { fromObject(value: unknown): unknown } } }
  downloadMediaMessage(message: WebMessage, type: 'stream', options: object): Promise<AsyncIterable<Uint8Array>>
}
export interface SilentLogger {
  readonly level: 'silent'
  child(): SilentLogger
  trace(): void
  debug(): void
  info(): void
  warn(): void
  error(): void
}
export interface Credentials {
  readonly me?: { readonly id: string; readonly name?: string }
  readonly [name: string]: unknown
}
export interface AuthState {
  readonly creds: Credentials
  readonly keys: {
    get(type: string, ids: readonly string[]): Promise<Record<string, unknown>>
    set(data: Readonly<Record<string, Readonly<Record<string, unknown>>>>): Promise<void>
  }
}

export interface ConnectionUpdate {
  readonly connection?: 'open' | 'connecting' | 'close'
  readonly qr?: string
  readonly isNewLogin?: boolean
  readonly lastDisconnect?: { readonly error?: { readonly output?: { readonly statusCode?: number } } }
}
export interface MessageKey {
  readonly id?: string | null
  readonly remoteJid?: string | null
  readonly fromMe?: boolean | null
  readonly participant?: string | null
}
/** A message as the protocol has it; its content has one field, named by its kind. */
export interface WebMessage {
  readonly key: MessageKey
  readonly message?: Readonly<Record<string, unknown>> | null
  readonly pushName?: string | null
  readonly messageTimestamp?: number | { toNumber(): number } | null
}
interface Events {
  'connection.update': ConnectionUpdate
  'creds.update': Partial<Credentials>
  'messages.upsert': { readonly type: 'notify' | 'append'; readonly messages: readonly WebMessage[] }
}
export interface Socket {
  readonly ev: { on<E extends keyof Events>(event: E, listener: (value: Events[E]) => void): void }
  readonly user?: { readonly id: string; readonly name?: string }
  sendMessage(
    jid: string,
    content: Readonly<Record<string, unknown>>,
    options?: { readonly quoted?: WebMessage; readonly messageId?: string },
  ): Promise<{ readonly key: MessageKey } | undefined>
  sendPresenceUpdate(type: 'composing', jid: string): Promise<void>
  end(error?: Error): void
}

/** The reason that WhatsApp gives when the phone unlinked this device. */
export const LOGGED_OUT = 401

export type LoadBaileys = () => Promise<Baileys>

/** Rejects with `ERR_MODULE_NOT_FOUND` while the package is not installed: the host then says how to install it. */
export async function loadBaileys(): Promise<Baileys> {
  // By a variable, so that neither the compiler nor the build needs the package.
  const name = '@whiskeysockets/baileys'
  return (await import(name)) as Baileys
}

const nothing = (): void => undefined
/** Its own log would contain messages and keys. */
export const silentLogger: SilentLogger = {
  level: 'silent',
  child: () => silentLogger,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
}
