/**
 * Platforms in a process of their own: `channel-fakes.ts` starts it with the names of channels as arguments, and sends it
 * the address of the daemon, and loads.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { deliverUntilTaken, platforms } from '../support/platforms/all.ts'
import type { FakePlatform } from '../support/platforms/platform.ts'
import type { FakesRequest, LoadReport } from './channel-fakes.ts'

const TICK_MS = 5
const daemon = Promise.withResolvers<string>()
const running: FakePlatform[] = []

for (const channel of process.argv.slice(2)) {
  const platform = await platforms[channel]?.()
  if (!platform) throw new Error(`There is no platform ${channel}`)
  platform.setWebhook((request) => deliverUntilTaken(() => daemon.promise, channel, request))
  running.push(platform)
}
process.on('message', (request: FakesRequest) => {
  if ('url' in request) return daemon.resolve(request.url)
  const answering = 'perSecond' in request ? deliver(request.perSecond, request.seconds) : Promise.resolve(shown())
  answering.then(
    (answer) => process.send?.(answer),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
process.on('disconnect', () => {
  Promise.all(running.map((platform) => platform[Symbol.asyncDispose]())).finally(() => process.exit())
})
process.send?.(running.map(({ channel, config, person }) => ({ channel, config, person })))

/** Messages of the usual person of each platform, in turns, as they come due. */
async function deliver(perSecond: number, seconds: number): Promise<LoadReport> {
  const total = perSecond * seconds
  const refused: string[] = []
  const sends: Promise<void>[] = []
  const begun = performance.now()
  while (sends.length < total) {
    const due = Math.min(total, Math.floor(((performance.now() - begun) / 1000) * perSecond))
    while (sends.length < due) {
      const number = sends.length
      const platform = running[number % running.length]
      if (!platform) throw new Error('There is no platform')
      const sending = platform.deliver({ text: `echo ${platform.channel}-${number}` })
      sends.push(
        sending.then(
          () => undefined,
          (error: unknown) => void refused.push(`${platform.channel}: ${String(error)}`),
        ),
      )
    }
    await delay(TICK_MS)
  }
  const offeredMs = performance.now() - begun
  await Promise.all(sends)
  return { total, refused, offeredMs }
}

function shown(): readonly string[] {
  return running.flatMap(({ sent }) => sent.map(({ text }) => text))
}
