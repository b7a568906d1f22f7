import { describe, expect, it } from 'vitest'
import mattermost from '../../adapters/channels/mattermost/adapter.ts'
import telegram from '../../adapters/channels/telegram/adapter.ts'
import webhook from '../../adapters/channels/webhook/adapter.ts'
import { brokenChannels } from '../fixtures/broken-channels.ts'
import { startFakeMattermost } from '../support/platforms/mattermost.ts'
import { FakeTelegram } from '../support/platforms/telegram.ts'
import { FakeWebhook } from '../support/platforms/webhook.ts'
import { checks, runCheck } from './channel.ts'
import { ChannelStage } from './channel-stage.ts'

const bases = {
  telegram: { adapter: telegram, start: () => FakeTelegram.start() },
  mattermost: { adapter: mattermost, start: startFakeMattermost },
  webhook: { adapter: webhook, start: () => FakeWebhook.start() },
} as const

describe.concurrent('the suite of channels finds an adapter that', () => {
  it.for(brokenChannels)('$defect ($id)', async ({ id, base, breakAdapter }) => {
    const check = checks.find((one) => one.id === id)
    if (!check) throw new Error(`there is no check ${id}`)
    const { adapter, start } = bases[base]
    const stage = new ChannelStage(breakAdapter(adapter), await start())
    await expect(runCheck(check, stage)).rejects.toThrow()
    // Not awaited: some of these adapters do not end.
    void stage[Symbol.asyncDispose]()
    await stage.platform[Symbol.asyncDispose]()
  })
})

it('the suite has a broken adapter for every rule', () => {
  expect(checks.map(({ id }) => id).filter((id) => !brokenChannels.some((broken) => broken.id === id))).toEqual([])
})
