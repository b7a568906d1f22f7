import { notify } from 'svc/sdk'

/** An account of a chat platform can send and receive messages now. */
export const ChannelConnected = notify<{ readonly channel: string; readonly accountId: string }>('channels:connected')
/** It no longer can. */
export const ChannelDisconnected = notify<{
  readonly channel: string
  readonly accountId: string
  readonly reason: string
}>('channels:disconnected')
