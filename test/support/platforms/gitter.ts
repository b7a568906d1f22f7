import { startFakeMatrix } from './matrix.ts'
import type { FakeMatrix } from './matrix.ts'

/** The room acme/kitchen. */
export const ROOM = '#acme_kitchen:gitter.im'

/** gitter.im: a homeserver whose rooms are known by the names of repositories. */
export async function startFakeGitter(): Promise<FakeMatrix> {
  const fake = await startFakeMatrix()
  const { config, wrongConfig, chats } = fake
  fake.aliases.set(ROOM, chats.group ?? '')
  return Object.defineProperties(fake, {
    channel: { value: 'gitter' },
    config: { value: { ...config, rooms: [ROOM] } },
    wrongConfig: { value: { ...wrongConfig, rooms: [ROOM] } },
  })
}
