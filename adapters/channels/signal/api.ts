import type { Background } from 'svc/channels'
import type { Address, MessageRef } from './encode.ts'

/** One message to send. `files` are as RFC 2397 writes them. */
export interface Outgoing {
  readonly to: Address
  readonly text: string
  readonly files: readonly string[]
  readonly quote?: MessageRef & { readonly text: string }
}
/** Where a file is that was received. */
export interface FileRef {
  readonly id: string
  readonly chatId: string
}

/** What both servers can do for a number. */
export interface SignalApi {
  /** Throws `UpstreamFailure` if the server does not serve the number. */
  check(): Promise<void>
  /** Passes on events until the connection ends. Settles when it is open. */
  listen(receive: (event: unknown) => Promise<void>): Promise<Background>
  /** The name of a file as the server takes it. */
  fileName(name: string): string
  /** Returns the time of the message, which is its id. */
  send(message: Outgoing): Promise<number>
  delete(to: Address, timestamp: number): Promise<void>
  typing(to: Address): Promise<void>
  react(to: Address, target: MessageRef, emoji: string): Promise<void>
  readFile(file: FileRef, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
}
