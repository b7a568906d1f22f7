import { platforms } from '../support/platforms/all.ts'
import { accountToml, startFakes, waitForConnections } from './channel-fakes.ts'
import type { Result } from './figures.ts'
import { measureMemory } from './memory.ts'

const LIMIT_MB = 100
/** Its platform has closed, so no account of it connects. */
const CLOSED = 'guilded'

/** What one idle account of every channel costs, connected to platforms in another process. */
export async function channelFleet(): Promise<readonly Result[]> {
  const channels = Object.keys(platforms).filter((channel) => channel !== CLOSED)
  await using fakes = await startFakes(channels)
  const none = await measureMemory('', async () => {})
  const all = await measureMemory(
    fakes.accounts.map(({ channel, config }) => accountToml(channel, 'default', config)).join('\n'),
    async ({ port }) => {
      fakes.connect(`http://127.0.0.1:${port}`)
      for (const channel of channels) await waitForConnections(port, channel, 1)
    },
  )
  const mb = (bytes: number): number => bytes / 1024 / 1024
  const [rss, live] = [mb(all.rss - none.rss), mb(all.live - none.live)]
  return [
    {
      label: `an idle account of each of ${channels.length} channels, RSS; alive after a collection`,
      value: `+${rss.toFixed(1)} MB; +${live.toFixed(1)} MB`,
      floor: `${mb(none.rss).toFixed(1)} MB; ${mb(none.live).toFixed(1)} MB`,
      ratio: '-',
      goal: `<= +${LIMIT_MB} MB`,
      reached: rss <= LIMIT_MB,
    },
  ]
}
