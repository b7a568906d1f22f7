import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import { ChannelStage } from '../channel-stage.ts'
import { upstream, within } from './check.ts'
import type { ChannelCheck } from './check.ts'

export const connecting: readonly ChannelCheck[] = [
  {
    id: 'probe',
    title: 'a probe tells whose credentials these are, and shows nothing',
    async run(stage) {
      const { account } = await stage.adapter.probe(stage.test.link)
      ok(account !== '')
      for (const secret of stage.platform.secrets) ok(!account.includes(secret))
      strictEqual(stage.platform.sent.length, 0)
    },
  },
  {
    id: 'wrong-token',
    title: 'wrong credentials are auth, when it opens and when it is probed',
    applies: ({ platform }) => platform.wrongConfig !== undefined,
    expectsViolations: true,
    async run(stage) {
      const { wrongConfig } = stage.platform
      await using wrong = new ChannelStage(stage.adapter, stage.platform, wrongConfig)
      for (const run of [() => wrong.open(), () => wrong.adapter.probe(wrong.test.link)])
        upstream(await wrong.failureOf(run), { reason: 'auth', retry: 'never' })
      stage.errors.push(...wrong.errors)
    },
  },
  {
    id: 'lost-link',
    title: 'a lost connection is reported, and the next one misses nothing',
    applies: ({ platform }) => platform.disconnect !== undefined,
    async run(stage) {
      const connection = await stage.open()
      await stage.platform.deliver({ text: 'before' })
      await stage.test.waitForReceived(1)
      await stage.platform.disconnect?.()
      const end = await within('the end of the connection', connection.closed)
      strictEqual(end.retry, 'later')
      ok(end.reason !== '')
      const { redelivers } = stage.platform
      if (redelivers) await stage.platform.deliver({ text: 'while it was away' })
      await stage.reopen()
      await stage.platform.deliver({ text: 'after' })
      const texts = redelivers ? ['before', 'while it was away', 'after'] : ['before', 'after']
      const received = await stage.test.waitForReceived(texts.length)
      deepStrictEqual(
        received.map(({ text }) => text),
        texts,
      )
    },
  },
  {
    id: 'abort-open',
    title: 'opening ends when it is aborted',
    async run(stage) {
      const opening = stage.adapter.open(stage.test.link)
      stage.test.abort()
      const outcome = await within('the aborted opening', Promise.allSettled([opening]))
      for (const result of outcome)
        if (result.status === 'fulfilled') await within('the end', result.value[Symbol.asyncDispose]())
    },
  },
  {
    id: 'stop',
    title: 'a connection stops within two seconds, and receives nothing more',
    async run(stage) {
      const connection = await stage.open()
      await stage.platform.deliver({ text: 'before' })
      await stage.test.waitForReceived(1)
      await within('the end', connection[Symbol.asyncDispose]())
      await within('the report of the end', connection.closed)
      strictEqual(stage.test.received.length, 1)
    },
  },
  {
    id: 'abort',
    title: 'a connection ends when its link does',
    async run(stage) {
      const connection = await stage.open()
      stage.test.abort()
      await within('the end', connection.closed)
      await within('the disposal', connection[Symbol.asyncDispose]())
    },
  },
]
