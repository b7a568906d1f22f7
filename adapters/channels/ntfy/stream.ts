import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'
import { runInBackground, SavedPosition } from 'svc/channels'
import type { ApiClient, Background, ChannelLink } from 'svc/channels'
import type { NtfyConfig } from './config.ts'
import { decodeLine } from './decode.ts'
import { Line } from './wire.ts'

/** The position in the topic: the id of a message that is durable, or the time of the first connection. */
const SINCE = 'since'
/** Two signs of life, which ntfy sends every 45 seconds. */
const MAX_SILENCE_MS = 100_000
const MAX_LINE = 65_536

/** Opens the stream of a topic, and receives until it ends. */
export async function startStream(link: ChannelLink<NtfyConfig>, client: ApiClient, base: string): Promise<Background> {
  const position = new SavedPosition(link, SINCE)
  const since = (await position.read()) ?? String(Math.floor(link.now() / 1000))
  // Written before the first message: what comes between two connections is not lost then.
  await position.write(since)
  const url = `${base}/${link.config.topic}/json?since=${encodeURIComponent(since)}`
  const { promise: opened, resolve, reject } = Promise.withResolvers<void>()
  const background = runInBackground(link, async (signal) => {
    try {
      const response = await client.open(url, { signal, streamIdleMs: MAX_SILENCE_MS })
      resolve()
      await receiveLines(link, position, response.chunks())
    } catch (error) {
      reject(error)
      throw error
    } finally {
      await flush(link, position)
    }
    throw new UpstreamFailure('ntfy', 'ntfy ended the stream', { reason: 'cut', retry: 'later' })
  })
  await opened
  return background
}

async function flush(link: ChannelLink<NtfyConfig>, position: SavedPosition): Promise<void> {
  try {
    await position.flush()
  } catch (error) {
    // An older position holds: what came after it is delivered again.
    link.log.warn('The position in the topic of ntfy could not be saved', { error })
  }
}

async function receiveLines(
  link: ChannelLink<NtfyConfig>,
  position: SavedPosition,
  chunks: AsyncIterable<Uint8Array>,
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    link.heard()
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_LINE)
      throw new UpstreamFailure('ntfy', 'ntfy sent a line without an end', { reason: 'malformed', retry: 'later' })
    for (const line of lines) if (line !== '') await receiveLine(link, position, line)
  }
}

async function receiveLine(link: ChannelLink<NtfyConfig>, position: SavedPosition, text: string): Promise<void> {
  const line = readLine(text)
  if (!line) {
    link.log.warn('ntfy: a line that cannot be read was left out')
    return
  }
  const message = decodeLine(line)
  if (message) await link.receive(message)
  if (line.event === 'message') position.set(line.id)
}

function readLine(text: string): Line | undefined {
  try {
    const result = v.safeParse(Line, readJson(text))
    return result.success ? result.output : undefined
  } catch {
    return undefined /* logged by the caller */
  }
}
