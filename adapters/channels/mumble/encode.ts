import type { MumbleConfig } from './config.ts'
import { encodeFrame } from './wire.ts'

/** The version of the protocol, 1.4.0: two bytes, one and one. */
const VERSION = 0x01_04_00
/** Tells servers from 1.5 on that this user is no person. */
const BOT = 1

export function encodeVersion(): Uint8Array {
  return encodeFrame('version', (pbf) => {
    pbf.writeVarintField(1, VERSION)
    pbf.writeStringField(2, 'svc')
  })
}

export function encodeAuthenticate({ username, token }: MumbleConfig): Uint8Array {
  return encodeFrame('authenticate', (pbf) => {
    pbf.writeStringField(1, username)
    if (token !== undefined) pbf.writeStringField(2, token)
    // A user without Opus makes the server change the codec of everybody.
    pbf.writeBooleanField(5, true)
    pbf.writeVarintField(6, BOT)
  })
}

/** Servers answer with the same number, after what they were sent before. */
export function encodePing(timestamp: number): Uint8Array {
  return encodeFrame('ping', (pbf) => pbf.writeVarintField(1, timestamp))
}

/** The server passes no voice on to a user who is deaf. */
export function encodeDeaf(session: number): Uint8Array {
  return encodeFrame('userState', (pbf) => {
    pbf.writeVarintField(1, session)
    pbf.writeBooleanField(9, true)
    pbf.writeBooleanField(10, true)
  })
}

export function encodeMove(session: number, channelId: number): Uint8Array {
  return encodeFrame('userState', (pbf) => {
    pbf.writeVarintField(1, session)
    pbf.writeVarintField(5, channelId)
  })
}

/** The sessions of one person, or a channel. */
export type Target = { readonly sessions: readonly number[] } | { readonly channelId: number }

export function encodeText(target: Target, text: string): Uint8Array {
  return encodeFrame('textMessage', (pbf) => {
    if ('channelId' in target) pbf.writeVarintField(3, target.channelId)
    else for (const session of target.sessions) pbf.writeVarintField(2, session)
    pbf.writeStringField(5, text)
  })
}
