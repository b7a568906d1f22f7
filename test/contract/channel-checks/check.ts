import { ok, strictEqual } from 'node:assert/strict'
import { UpstreamFailure } from 'svc/sdk'
import type { Dialect } from 'svc/channels'
import type { PlatformFault, PlatformFile } from '../../support/platforms/platform.ts'
import type { ChannelStage } from '../channel-stage.ts'

/** One rule that every adapter keeps. */
export interface ChannelCheck {
  /** Never changes, so that a broken adapter can name the rule that it breaks. */
  readonly id: string
  readonly title: string
  /** Whether the rule holds for this adapter and platform; always when absent. */
  applies?(stage: ChannelStage): boolean
  /** Refusals of the platform are a part of it. */
  readonly expectsViolations?: true
  run(stage: ChannelStage): Promise<void>
}

const MAX_STOP_MS = 6000
/** A text with markup, and signs that mean something, as the channel host renders them. */
export const SAMPLES: Readonly<Record<Dialect, string>> = {
  plain: '1 < 2 & 3 "quoted" *as it is*',
  markdown: '**bold** `code` 1 < 2',
  discord: '**bold** `code` 1 < 2',
  'telegram-html': '<b>bold</b> <code>a &lt; b</code> &amp; <a href="https://example.com/?a=1&amp;b=2">link</a>',
  'matrix-html': '<strong>bold</strong> <code>a &lt; b</code> &amp;',
  slack: '*bold* `code` 1 &lt; 2 &amp; 3',
  whatsapp: '*bold* _italic_ ```code``` 1 < 2',
  xmpp: '*bold* _italic_ `code` 1 < 2 & 3',
  irc: 'bold 1 < 2 & 3',
  'email-html': '<p><strong>bold</strong> 1 &lt; 2</p>',
}
export const PICTURE: PlatformFile = {
  kind: 'image',
  name: 'dot.png',
  mime: 'image/png',
  bytes: Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  ),
}
export const DOCUMENT: PlatformFile = {
  kind: 'file',
  name: 'notes ä.txt',
  mime: 'text/plain',
  bytes: Buffer.from('äöü\n'),
}

export const hasFault =
  (kind: PlatformFault['kind']) =>
  ({ platform }: ChannelStage): boolean =>
    platform.faults.has(kind)

export function upstream(error: unknown, expected: { reason?: string; retry: 'later' | 'never' }): UpstreamFailure {
  ok(error instanceof UpstreamFailure, `not an UpstreamFailure: ${String(error)}`)
  strictEqual(error.retry, expected.retry, error.message)
  if (expected.reason !== undefined) strictEqual(error.reason, expected.reason, error.message)
  return error
}

export async function within<T>(what: string, promise: PromiseLike<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`${what} took longer than ${MAX_STOP_MS} ms`)), MAX_STOP_MS)
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

export async function bytesOf(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks)
}
