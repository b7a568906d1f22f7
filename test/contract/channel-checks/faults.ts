import { ok, strictEqual } from 'node:assert/strict'
import type { PlatformFault } from '../../support/platforms/platform.ts'
import { hasFault, upstream } from './check.ts'
import type { ChannelCheck } from './check.ts'

/** A fault of the platform, and how the adapter has to report it. */
const failing = (
  id: string,
  title: string,
  fault: PlatformFault,
  expected: { reason?: string; retry: 'later' | 'never'; retryAfterSecs?: number },
): ChannelCheck => ({
  id,
  title,
  applies: hasFault(fault.kind),
  async run(stage) {
    const connection = await stage.open()
    const message = stage.message('hello')
    stage.platform.fail(fault)
    const error = upstream(await stage.failureOf(() => connection.send(message)), expected)
    if (expected.retryAfterSecs !== undefined)
      ok(Math.abs((error.retryAfterSecs ?? NaN) - expected.retryAfterSecs) <= 1, `${error.retryAfterSecs}`)
    strictEqual(stage.platform.sent.length, 0, 'the adapter tried again by itself')
    await connection.send(message)
    await stage.platform.waitForSent(1)
  },
})

export const faults: readonly ChannelCheck[] = [
  failing(
    'rate-limit',
    '429 with a pause is rate_limit with this pause',
    { kind: 'rate_limit', retryAfterSecs: 7 },
    { reason: 'rate_limit', retry: 'later', retryAfterSecs: 7 },
  ),
  failing(
    'rate-limit-without-hint',
    '429 without a pause is rate_limit',
    { kind: 'rate_limit' },
    { reason: 'rate_limit', retry: 'later' },
  ),
  failing('server-error', 'an error of the server may pass', { kind: 'server_error' }, { retry: 'later' }),
  failing('permanent', 'a message that is never taken is not tried again', { kind: 'permanent' }, { retry: 'never' }),
  failing(
    'revoked',
    'revoked credentials are auth',
    { kind: 'auth' },
    {
      reason: 'auth',
      retry: 'never',
    },
  ),
  {
    id: 'reset',
    title: 'a connection that is reset may pass, and nothing was sent',
    applies: hasFault('reset'),
    async run(stage) {
      await stage.open()
      const message = stage.message('hello')
      stage.platform.fail({ kind: 'reset' })
      upstream(await stage.failureOf(() => stage.connection.send(message)), { retry: 'later' })
      strictEqual(stage.platform.sent.length, 0)
      if (stage.platform.disconnect) await stage.reopen()
      await stage.connection.send(message)
      await stage.platform.waitForSent(1)
    },
  },
  ...['<html>Back soon</html>', '{"maintenance":true}'].map((body, index): ChannelCheck => ({
    id: `foreign-answer-${index}`,
    title: `status 200 with ${body} is no success, and may pass`,
    applies: ({ platform }) => platform.answersInJson === true,
    async run(stage) {
      await stage.open()
      const message = stage.message('hello')
      stage.test.nextAnswer = new Response(body)
      upstream(await stage.failureOf(() => stage.connection.send(message)), { reason: 'malformed', retry: 'later' })
      await stage.connection.send(message)
      await stage.platform.waitForSent(1)
    },
  })),
  {
    id: 'lost-answer',
    title: 'a message whose answer is lost is sent again without a second one, where the platform allows it',
    applies: (stage) => hasFault('lost_answer')(stage),
    async run(stage) {
      await stage.open()
      const message = stage.message('hello')
      stage.platform.fail({ kind: 'lost_answer' })
      upstream(await stage.failureOf(() => stage.connection.send(message)), { retry: 'later' })
      if (stage.platform.disconnect) await stage.reopen()
      await stage.connection.send(message)
      strictEqual(stage.platform.sent.length, stage.adapter.capabilities.idempotentSend ? 1 : 2)
    },
  },
]
