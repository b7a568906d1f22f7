import { readJson, UpstreamFailure } from 'svc/sdk'
import type { WebSocketConnection } from 'svc/sdk'
import { pause } from './background.ts'
import type { ChannelLink } from './channel.ts'
import { FrameSocket } from './frame-socket.ts'
import type { FrameCodec, FrameHandler } from './frame-socket.ts'

const json: FrameCodec = {
  encode: (frame) => JSON.stringify(frame),
  decode: (data) => readJson(typeof data === 'string' ? data : new TextDecoder().decode(data)),
}

/** A WebSocket with JSON in both directions. */
export class JsonSocket extends FrameSocket {
  constructor(link: Pick<ChannelLink<unknown>, 'heard'>, socket: WebSocketConnection, handle: FrameHandler) {
    super(link, socket, handle, json)
  }
}

/** Sends a ping frame at intervals until the signal aborts, so that a quiet connection is heard of. */
export async function keepAlive(
  link: Pick<ChannelLink<unknown>, 'sleep'>,
  socket: Pick<FrameSocket, 'ping'>,
  intervalMs: number,
  signal: AbortSignal,
): Promise<void> {
  while (await pause(link, intervalMs, signal)) socket.ping()
}

/** As the promise, unless it takes longer: then an `UpstreamFailure` says that the platform did not answer in time. */
export async function within<T>(ms: number, system: string, promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timeout = AbortSignal.timeout(ms)
  const fail = (): void =>
    late.reject(new UpstreamFailure(system, `${system} did not answer in time`, { reason: 'timeout', retry: 'later' }))
  timeout.addEventListener('abort', fail, { once: true })
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    timeout.removeEventListener('abort', fail)
  }
}
