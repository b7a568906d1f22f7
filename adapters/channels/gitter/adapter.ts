import * as v from 'valibot'
import { defineAdapter } from 'svc/channels'
import type { ChannelConnection, ChannelLink } from 'svc/channels'
import matrix from '../matrix/adapter.ts'
import { GitterConfig } from './config.ts'
import type { Link } from './config.ts'
import { joinRooms } from './rooms.ts'

/** The link as the adapter of Matrix has it. */
function asMatrix(link: Link): ChannelLink<Readonly<Record<string, unknown>>> {
  const { rooms: _, ...config } = link.config
  return { ...link, config: v.parse(matrix.config, config), receive: (message) => link.receive(message) }
}

async function open(link: Link): Promise<ChannelConnection> {
  // Before the position in the events is read: what was written before the bot came is not for it.
  const warnings = await joinRooms(link)
  const connection = await matrix.open(asMatrix(link))
  return { ...connection, warnings: () => [...warnings, ...(connection.warnings?.() ?? [])] }
}

export default defineAdapter({
  ...matrix,
  config: GitterConfig,
  open,
  probe: (link) => matrix.probe(asMatrix(link)),
})
