import { expect, it } from 'vitest'
import { AdmissionControl } from '../../../plugins/channels/policies/admission.ts'
import { recorder } from '../../core/storage/engines.ts'
import { account, adapter, message } from './inbox-stage.ts'

it('another bot gets an answer only where the operator lets bots in', async () => {
  const admission = new AdmissionControl({
    pairing: { find: async () => undefined, redeem: async () => 'wrong' },
    router: { isFollowed: async () => false },
    now: () => 0,
    log: recorder().log,
    settings: { message_chars: 100, notices_per_minute: 1 },
  })
  const settings = { ...account.settings, allowed_users: ['ada'] }
  const ofBot = { ...message('m1'), sender: { id: 'ada', name: 'Ada', isBot: true } }
  const verdictWith = async (config: Readonly<Record<string, unknown>>) =>
    (await admission.decide({ ...account, settings, config }, adapter, ofBot)).verdict
  expect(await verdictWith({})).toBe('refused')
  expect(await verdictWith({ ignore_bots: true })).toBe('refused')
  expect(await verdictWith({ ignore_bots: false })).toBe('accepted')
})
