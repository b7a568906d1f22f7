import { notify } from 'svc/sdk'

/** A daemon that is linked. */
export interface LinkedPeer {
  readonly nodeId: string
  readonly nodeName: string
  /** Where it is. */
  readonly address: string
  readonly encrypted: boolean
  /** It proved a key of its own. */
  readonly hasKey: boolean
}
/** Another daemon is linked: both sides have proven who they are. */
export const PeerConnected = notify<{ readonly peer: LinkedPeer }>('peers:connected')
/** A link has ended. `reason` is for people. */
export const PeerDisconnected = notify<{ readonly peer: LinkedPeer; readonly reason: string }>('peers:disconnected')
