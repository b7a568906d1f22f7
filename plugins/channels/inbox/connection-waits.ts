import { accountKey } from '../accounts/account.ts'
import type { InboxRow } from './schema.ts'

/** The account whose connection a message waits for. */
export interface AwaitedAccount {
  readonly channel: string
  /** Any account of the channel where there is none. */
  readonly id?: string | undefined
}
type WaitingRow = Pick<InboxRow, 'id' | 'queue'>

/** Messages that are postponed until an account is connected. */
export class ConnectionWaits {
  readonly #rows = new Map<string, { readonly row: WaitingRow; readonly account: AwaitedAccount }>()

  add(row: WaitingRow, account: AwaitedAccount): void {
    this.#rows.set(row.id, { row, account })
  }
  delete({ id }: WaitingRow): void {
    this.#rows.delete(id)
  }
  /** Removes and returns those that wait for this account. */
  take(channel: string, accountId: string): readonly WaitingRow[] {
    const key = accountKey(channel, accountId)
    const rows = [...this.#rows.values()]
      .filter(({ account }) => accountKey(account.channel, account.id ?? accountId) === key)
      .map(({ row }) => row)
    for (const row of rows) this.delete(row)
    return rows
  }
}
