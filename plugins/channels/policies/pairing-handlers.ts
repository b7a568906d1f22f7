import type * as v from 'valibot'
import { commandLine, Refusal } from 'svc/sdk'
import { chooseAccount } from '../http/views.ts'
import type { Person } from './pairing-routes.ts'
import type { Role } from './roles.ts'
import type { Paired } from './store.ts'
import type { HandlerDeps } from '../http/handlers.ts'

interface Input<Params> {
  readonly params: Params
}
interface RequestInput extends Input<{ readonly name: string }> {
  readonly body: { readonly account_id?: string | undefined; readonly role: Role }
}

/** What the routes of pairing do. */
export function pairingHandlers({
  messaging,
  accounts,
  channelName,
}: Pick<HandlerDeps, 'messaging' | 'accounts' | 'channelName'>) {
  const { pairing } = messaging
  return {
    async requestPairing({ params, body }: RequestInput) {
      const channel = channelName(params.name)
      const entries = await accounts.list()
      const place = { channel, id: chooseAccount(entries, channel, body.account_id) }
      if (!entries.some((entry) => entry.channel === channel && entry.id === place.id))
        throw new Refusal(
          'conflict',
          `There is no account "${place.id}" of ${place.channel} that a code could be sent to: ` +
            `${commandLine(`channels add ${place.channel}`)} makes one`,
        )
      const { code, expiresAt } = await pairing.request(place, body.role)
      return { pairing_code: code, expires_at: expiresAt, role: body.role }
    },
    async listPaired({ params }: Input<{ readonly name: string }>) {
      const channel = channelName(params.name)
      const [people, codes] = await Promise.all([pairing.list(channel), pairing.codes(channel)])
      return { people: people.map(toPerson), pending_codes: codes.length }
    },
    async revokePairing({ params }: Input<{ readonly name: string; readonly id: string }>) {
      await pairing.revoke(channelName(params.name), params.id)
      return { status: 'removed' as const }
    },
  }
}

function toPerson({ id, account, sender_id, name, role, paired_at }: Paired): v.InferOutput<typeof Person> {
  return { id, account_id: account, sender_id, name, role, paired_at }
}
