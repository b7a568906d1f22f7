import type { Journal } from '../../journal/contract.ts'
import type { DeviceWork, DeviceWorkAsked } from '../../pairing/contract.ts'
import type { Chat } from '../contract.ts'
import { readOptions } from './live-turn.ts'

/** Adds the turns of a device that have not ended. */
export async function addTurns(
  { journal, chat }: { readonly journal: Pick<Journal, 'open'>; readonly chat: Pick<Chat, 'cancel'> },
  asked: DeviceWorkAsked,
): Promise<DeviceWorkAsked> {
  if (asked.credential === undefined) return asked
  const open = (await journal.open()).filter(({ options }) => readOptions(options).credential === asked.credential)
  const found = open.map(({ id, agentId, entryPoint }): DeviceWork => ({
    kind: 'turn',
    id,
    name: entryPoint,
    agentId,
    statements: [],
    after: async () => chat.cancel(id),
  }))
  return { ...asked, found: [...asked.found, ...found], turns: [...asked.turns, ...open.map(({ id }) => id)] }
}
