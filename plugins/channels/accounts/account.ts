import type { AccountSettings } from './settings.ts'

/** One bot on one platform, as configured. */
export interface Account {
  readonly channel: string
  /** `default` when the channel has only one. */
  readonly id: string
  readonly enabled: boolean
  /** `file`: `[channels.<name>]` of config.toml. `api`: configured over the API or the command line. */
  readonly source: 'file' | 'api'
  /** The keys that are the same on every platform. */
  readonly settings: AccountSettings
  /** The adapter's own fields, with secrets. Checked by its schema when it connects. */
  readonly config: Readonly<Record<string, unknown>>
  /** Variables of the environment that the file names for fields, and that are not set, by field. */
  readonly unsetVariables?: Readonly<Record<string, string>>
}
/** The name of an account in logs, queues and maps. */
export const accountKey = (channel: string, id: string): string => `${channel}/${id}`
/** The account as it is configured now; `undefined` when it was removed. */
export type FindAccount = (channel: string, accountId: string) => Promise<Account | undefined>
