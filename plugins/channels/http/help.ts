import { commandLine } from 'svc/sdk'
import { DEFAULT_ACCOUNT } from '../accounts/account-id.ts'
import type { AccountEntry } from '../accounts/service.ts'
import type { AccountState } from '../connections/status.ts'

/** What to do about an account that is not connected; `undefined` when there is nothing. */
export function helpFor(
  { channel, id, source }: Pick<AccountEntry, 'channel' | 'id' | 'source'>,
  state: AccountState,
): string | undefined {
  const account = `${channel}${id === DEFAULT_ACCOUNT ? '' : ` --account ${id}`}`
  const retry = `${commandLine(`channels enable ${account}`)} tries again`
  switch (state) {
    case 'misconfigured':
      return source === 'file'
        ? `correct [channels.${channel}] in config.toml and run ${commandLine('config reload')}; ` +
            `${commandLine(`channels add ${account}`)} stores a secret that the file lacks, and ${retry}`
        : `${commandLine(`channels add ${account}`)} changes its values, and ${retry} with those it has`
    case 'needs_login':
      return `${commandLine(`channels login ${account}`)} shows a QR code to scan`
    case 'missing_dependency':
      return `install what is missing, then ${retry}`
    case 'backing_off':
      return 'it is tried again by itself; if it stays so, check the address of the account and whether the server runs'
    case 'error':
      return 'it is tried again by itself; the log of the daemon has more'
    case 'disabled':
    case 'connecting':
    case 'connected':
    case 'standby':
    case 'retired':
      return undefined
  }
}
