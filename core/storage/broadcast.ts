import type { Statement } from './database.ts'

/** Who hears what the other daemons on a database say under a topic. Must not throw. */
export interface BroadcastListener {
  /** `from`: the `daemonId` of the sender. */
  heard(data: unknown, from: string): void
  /** Something may have been said that did not arrive: read anew what is kept in memory. */
  missed(): void
}

/**
 * Messages between the daemons on one database. A daemon does not hear itself. A topic is `<plugin>.<subject>`; its
 * messages are JSON, and those of one sender arrive in their order.
 */
export interface Broadcast {
  /** Of this run of this daemon; never used again. */
  readonly daemonId: string
  /** `false` where no other daemon can be, as on SQLite: then nothing is sent and nothing heard. */
  readonly isShared: boolean
  /**
   * For the batch that changes what it tells of: the other daemons hear it once that is committed, and never otherwise.
   * Empty where no other daemon can be.
   */
  tell(topic: string, data: unknown): readonly Statement[]
  /**
   * At once and outside of any batch, for what may be lost, such as the text of an answer that is being written.
   * `to`: the only daemon that is to hear it.
   */
  send(topic: string, data: unknown, to?: string): void
  /** Until it is disposed. */
  on(topic: string, listener: BroadcastListener): Disposable
}

/** For a database that no other daemon can use. */
export function noBroadcast(daemonId: string): Broadcast {
  return {
    daemonId,
    isShared: false,
    tell: () => [],
    send() {
      /* Nobody is there. */
    },
    on: () => ({
      [Symbol.dispose]() {
        /* Nothing was opened. */
      },
    }),
  }
}
