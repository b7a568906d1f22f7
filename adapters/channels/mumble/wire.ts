import { PbfReader, PbfWriter } from 'pbf'

// Only the messages and fields that are used. Source: src/Mumble.proto and src/MumbleProtocol.h of
// github.com/mumble-voip/mumble (looked up in November 2026)
const TYPES = {
  version: 0,
  authenticate: 2,
  ping: 3,
  reject: 4,
  serverSync: 5,
  channelRemove: 6,
  channelState: 7,
  userRemove: 8,
  userState: 9,
  textMessage: 11,
  permissionDenied: 12,
  serverConfig: 24,
} as const
export type ClientType = 'version' | 'authenticate' | 'ping' | 'userState' | 'textMessage'

/** What is known of a user or a channel; what is absent did not change. */
export interface UserState {
  session?: number
  name?: string
  userId?: number
  channelId?: number
  /** SHA-1 of the user's certificate. */
  hash?: string
}
export interface ChannelState {
  channelId?: number
  parent?: number
  name?: string
}
export interface TextMessage {
  /** Absent in messages of the server itself. */
  actor?: number
  readonly sessions: number[]
  readonly channels: number[]
  readonly trees: number[]
  message: string
}
/** `reason` is empty where the type says all. */
export interface Refused {
  type: number
  reason: string
}
export type ServerMessage =
  | ({ readonly kind: 'ping' } & { timestamp: number })
  | ({ readonly kind: 'reject' } & Refused)
  | ({ readonly kind: 'serverSync' } & { session: number })
  | ({ readonly kind: 'channelRemove' } & { channelId: number })
  | ({ readonly kind: 'channelState' } & ChannelState)
  | ({ readonly kind: 'userRemove' } & { session: number; reason: string; isBan: boolean })
  | ({ readonly kind: 'userState' } & UserState)
  | ({ readonly kind: 'textMessage' } & TextMessage)
  | ({ readonly kind: 'permissionDenied' } & Refused)
  | ({ readonly kind: 'serverConfig' } & { allowHtml: boolean; maxLength: number })

/** The type (2 bytes) and the length (4 bytes) come before each message. */
const HEADER_BYTES = 6
/** Source: src/Connection.cpp of the server. */
const MAX_BODY_BYTES = 0x7f_ff_ff

export interface Frame {
  readonly type: number
  readonly body: Uint8Array
}

/** The messages of a connection. Ends with it; throws on a length that no server sends. */
export async function* readFrames(connection: AsyncIterable<Uint8Array>): AsyncIterable<Frame> {
  let chunks: Uint8Array[] = []
  let size = 0
  let needed = HEADER_BYTES
  for await (const chunk of connection) {
    chunks.push(chunk)
    size += chunk.length
    if (size < needed) continue
    let rest = Buffer.concat(chunks)
    while (rest.length >= (needed = frameBytes(rest))) {
      yield { type: rest.readUInt16BE(0), body: rest.subarray(HEADER_BYTES, needed) }
      rest = rest.subarray(needed)
    }
    chunks = [rest]
    size = rest.length
  }
}

/** The bytes of the message at the beginning, with its header; those of a header while that is incomplete. */
function frameBytes(data: Buffer): number {
  if (data.length < HEADER_BYTES) return HEADER_BYTES
  const length = data.readUInt32BE(2)
  if (length > MAX_BODY_BYTES) throw new Error('the server sent a message that is too long')
  return HEADER_BYTES + length
}

export function encodeFrame(kind: ClientType, write: (pbf: PbfWriter) => void): Uint8Array {
  const pbf = new PbfWriter()
  write(pbf)
  const body = pbf.finish()
  const frame = Buffer.alloc(HEADER_BYTES + body.length)
  frame.writeUInt16BE(TYPES[kind], 0)
  frame.writeUInt32BE(body.length, 2)
  frame.set(body, HEADER_BYTES)
  return frame
}

/** A message of the server; `undefined` for those that are of no use here, such as voice. */
export function decodeFrame({ type, body }: Frame): ServerMessage | undefined {
  const pbf = new PbfReader(body)
  const kind = KINDS.get(type)
  switch (kind) {
    case 'ping':
      return { kind, ...pbf.readFields(readPing, { timestamp: 0 }) }
    case 'reject':
      return { kind, ...pbf.readFields(readReject, { type: 0, reason: '' }) }
    case 'serverSync':
      return { kind, ...pbf.readFields(readSession, { session: 0 }) }
    case 'channelRemove':
      return { kind, ...pbf.readFields(readChannel, { channelId: 0 }) }
    case 'channelState':
      return { kind, ...pbf.readFields(readChannelState, {}) }
    case 'userRemove':
      return { kind, ...pbf.readFields(readUserRemove, { session: 0, reason: '', isBan: false }) }
    case 'userState':
      return { kind, ...pbf.readFields(readUserState, {}) }
    case 'textMessage':
      return {
        kind,
        ...pbf.readFields(readText, { sessions: [], channels: [], trees: [], message: '' } as TextMessage),
      }
    case 'permissionDenied':
      return { kind, ...pbf.readFields(readDenied, { type: 0, reason: '' }) }
    case 'serverConfig':
      return { kind, ...pbf.readFields(readConfig, { allowHtml: true, maxLength: 0 }) }
    default:
      return undefined
  }
}

type Kind = keyof typeof TYPES
const KINDS: ReadonlyMap<number, Kind> = new Map(
  Object.entries(TYPES).map(([kind, type]): [number, Kind] => [type, kind as Kind]),
)

function readPing(tag: number, found: { timestamp: number }, pbf: PbfReader): void {
  if (tag === 1) found.timestamp = pbf.readVarint()
}
function readReject(tag: number, found: Refused, pbf: PbfReader): void {
  if (tag === 1) found.type = pbf.readVarint()
  if (tag === 2) found.reason = pbf.readString()
}
function readDenied(tag: number, found: Refused, pbf: PbfReader): void {
  if (tag === 4) found.reason = pbf.readString()
  if (tag === 5) found.type = pbf.readVarint()
}
function readSession(tag: number, found: { session: number }, pbf: PbfReader): void {
  if (tag === 1) found.session = pbf.readVarint()
}
function readChannel(tag: number, found: { channelId: number }, pbf: PbfReader): void {
  if (tag === 1) found.channelId = pbf.readVarint()
}
function readChannelState(tag: number, found: ChannelState, pbf: PbfReader): void {
  if (tag === 1) found.channelId = pbf.readVarint()
  if (tag === 2) found.parent = pbf.readVarint()
  if (tag === 3) found.name = pbf.readString()
}
function readUserRemove(tag: number, found: { session: number; reason: string; isBan: boolean }, pbf: PbfReader): void {
  if (tag === 1) found.session = pbf.readVarint()
  if (tag === 3) found.reason = pbf.readString()
  if (tag === 4) found.isBan = pbf.readBoolean()
}
function readUserState(tag: number, found: UserState, pbf: PbfReader): void {
  if (tag === 1) found.session = pbf.readVarint()
  if (tag === 3) found.name = pbf.readString()
  if (tag === 4) found.userId = pbf.readVarint()
  if (tag === 5) found.channelId = pbf.readVarint()
  if (tag === 15) found.hash = pbf.readString()
}
function readText(tag: number, found: TextMessage, pbf: PbfReader): void {
  if (tag === 1) found.actor = pbf.readVarint()
  if (tag === 2) pbf.readPackedVarint(found.sessions)
  if (tag === 3) pbf.readPackedVarint(found.channels)
  if (tag === 4) pbf.readPackedVarint(found.trees)
  if (tag === 5) found.message = pbf.readString()
}
function readConfig(tag: number, found: { allowHtml: boolean; maxLength: number }, pbf: PbfReader): void {
  if (tag === 3) found.allowHtml = pbf.readBoolean()
  if (tag === 4) found.maxLength = pbf.readVarint()
}
