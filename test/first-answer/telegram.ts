import { expectText, measure } from './commands.ts'
import type { FakeTelegram } from '../support/platforms/telegram.ts'

type Svc = (words: readonly string[], input?: string) => Promise<string>

/** A bot that a person is paired with, and that answers. */
export async function connectTelegram(fake: FakeTelegram, svc: Svc): Promise<void> {
  let code = ''
  /** What the bot answers to a message. */
  const say = async (text: string): Promise<string> => {
    const before = fake.sent.length
    await fake.deliver({ text })
    return (await fake.waitForSent(before + 1)).at(-1)?.text ?? ''
  }
  await measure('telegram', {
    'svc channels add, the token is accepted': async () =>
      expectText(await svc(['channels', 'add', 'telegram'], fake.token), 'The credentials are accepted'),
    'svc channels pair': async () => {
      const answer: unknown = JSON.parse(await svc(['channels', 'pair', 'telegram', '--operator', '--json']))
      code = String((answer as { pairing_code: unknown }).pairing_code)
    },
    'send the code': async () => expectText(await say(code), 'You are paired'),
    'its first answer': async () => {
      if ((await say('hello')) === '') throw new Error('the answer is empty')
    },
  })
}
