import type { StatusLines } from 'svc/cli'
import { escapeControls } from 'svc/cli'
import { listChannels, readChannel } from './client.ts'

/** A line per configured account: its state and its last error. */
const lines: StatusLines = async (_status, client) => {
  const { channels } = await listChannels(client)
  const configured = channels.filter((row) => row.configured)
  const views = await Promise.all(configured.map(({ name }) => readChannel(client, name)))
  return views.flatMap(({ name, account_list: accounts }) =>
    accounts.map(({ account_id: id, status }): [string, string] => {
      const state = status.state.replaceAll('_', ' ')
      const error = status.last_error === null ? '' : `: ${escapeControls(status.last_error)}`
      return ['channel', `${name}${id === 'default' ? '' : ` (${id})`} ${state}${error}`]
    }),
  )
}
export default lines
